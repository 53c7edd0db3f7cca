"""The routes together, behind the front."""

from __future__ import annotations

from starlette.routing import Router

from kente.serve.files import Files
from kente.serve.front import Front
from kente.serve.libre import Libre
from kente.serve.own import Own
from kente.serve.pages import Pages
from kente.serve.serving import Serving


def app_of(serving: Serving) -> Front:
    """The ASGI application of a server."""
    files = Files(serving)
    routes = [*Libre(serving, files).routes(), *Own(serving, files).routes(), *Pages(serving).routes()]
    return Front(Router(routes, redirect_slashes=False), serving, [route.path for route in routes])
