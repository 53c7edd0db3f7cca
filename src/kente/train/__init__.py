"""The loop and what it is made of: objectives, optimiser, plan, trainer."""
