"""Files come back byte for byte but for what was translated, or are refused with what was seen."""

from __future__ import annotations

import ast
import codecs
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.errors import DocumentError
from kente.text.documents import WrittenDocument, broken, open_document

ENCODINGS = {
    "utf-8": lambda text: text.encode(),
    "utf-8 with mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "utf-16 little": lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
    "utf-16 big": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
}

SUBTITLES = """1
00:00:01,000 --> 00:00:04,000
Good morning,
my dear friend.

2
00:00:05,500 --> 00:00:07,250 X1:100
<i>Where is</i> the cat?

3
00:00:08,000 --> 00:00:09,000
- Here.
- No!

4
00:00:10,000 --> 00:00:11,000
♪ ...
"""

MESSAGES = r"""# A comment.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=3; plural=0;\n"

#: main.c:7
#, c-format
msgctxt "menu"
msgid "Open %s"
msgstr ""

#, fuzzy
#| msgid "old"
msgid "draft"
msgstr "Entwurf"

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid ""
"Say \"hi\"\tto \\ me.\n"
"Two lines.\n"
msgstr ""

#~ msgid "gone"
#~ msgstr "weg"
"""

TABLE = "id\ten\tde\n1\tGood day.\t\n\n2\tHow are you? Fine.\tx\n"
PAGE = "<!DOCTYPE html>\n<html lang=en><title>A page</title><p>Hello <b>you</b>.</p>\n"
FILES = {"a.txt": "One. Two.\nThree\n", "a.html": PAGE, "a.srt": SUBTITLES, "a.tsv": TABLE}


def rot13(text: str) -> str:
    return codecs.encode(text, "rot13")


def translated(name: str, data: bytes, column: str = "1") -> WrittenDocument:
    document = open_document(name, data, column=column)
    first = [rot13(sentence) for sentence in document.sentences]
    return document.put_together(first, [rot13(part) for part in document.again(first)])


def messages(text: str) -> list[tuple[str, str]]:
    """(keyword, string) of a .po file, each string read as Python reads it, which has the same escapes."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if match := re.fullmatch(r'(msg\w+(?:\[\d\])?) (".*")', line):
            found.append((match[1], ast.literal_eval(match[2])))
        elif line.startswith('"'):
            found[-1] = (found[-1][0], found[-1][1] + ast.literal_eval(line))
    return found


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_whose_sentences_stay_comes_back_byte_for_byte(name: str, newline: str, encode) -> None:
    data = encode(FILES[name].replace("\n", newline))
    document = open_document(name, data)
    assert document.sentences
    assert document.put_together(document.sentences) == WrittenDocument(data)


@given(
    st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.sampled_from(list(ENCODINGS)),
)
def test_any_text_comes_back_byte_for_byte(text: str, encoding: str) -> None:
    for name in ("a.txt", "a.html", "a.tsv"):
        data = ENCODINGS[encoding](text)
        try:
            document = open_document(name, data)
        except DocumentError:  # a text that looks like a zip archive, for example
            continue
        assert document.put_together(document.sentences).data == data


@given(st.binary())
def test_bytes_of_any_kind_are_read_or_refused(data: bytes) -> None:
    for name in ("a.txt", "a.html", "a.po", "a.srt", "a.tsv"):
        try:
            document = open_document(name, data)
        except DocumentError as error:
            assert name in str(error)
        else:
            document.put_together(document.sentences)


# ---------------------------------------------------------------- subtitles


def test_subtitles_keep_numbers_times_and_lines() -> None:
    document = open_document("film.srt", SUBTITLES.encode())
    assert document.sentences == ["Good morning, my dear friend.", "Where is the cat?", "- Here.", "- No!"]
    written = document.put_together(
        ["Guten Morgen, lieber Freund.", "Wo ist die Katze?", "- Hier.", "- Nein!"], ["Wo ist", "die Katze?"]
    )
    assert written.data.decode() == (
        SUBTITLES.replace("Good morning,\nmy dear friend.", "Guten Morgen,\nlieber Freund.")
        .replace("<i>Where is</i> the cat?", "<i>Wo ist</i> die Katze?")
        .replace("- Here.\n- No!", "- Hier.\n- Nein!")
    )


def test_lines_are_broken_between_words_into_as_many_as_there_were() -> None:
    assert broken("aa bb cc dd", ["x", "y"], "\n") == "aa bb\ncc dd"
    assert broken("a <font color=red>b</font>", ["x", "y"], "\n") == "a\n<font color=red>b</font>"
    assert broken("oneword", ["x", "y"], "\n") == "oneword"
    assert broken("x  y", ["x ", "y"], "\r\n") == "x \r\ny"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Once upon a time", r"a.srt is not a subtitle file: .* it begins 'Once upon a time'"),
        ("1\n00:00:01 --> soon\nHi\n", r"a.srt:2: '00:00:01 --> soon' should be two times"),
        ("", r"a.srt is not a subtitle file"),
    ],
)
def test_wrong_subtitles_are_refused_with_what_was_seen(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        open_document("a.srt", text.encode())


# ---------------------------------------------------------------- messages of programs


def test_missing_messages_are_filled_and_all_else_stays() -> None:
    document = open_document("de.po", MESSAGES.encode())
    assert document.sentences == ["Open %s", "one file", "%d files", 'Say "hi" to \\ me.', "Two lines."]
    first = ["Öffne %s", "eine Datei", "%d Dateien", 'Sag "ja"\\.', "Zwei Zeilen."]
    written = document.put_together(first).data.decode()
    before, after = messages(MESSAGES), messages(written)
    filled = [entry for entry in after if entry not in before]
    assert filled == [
        ("msgstr", "Öffne %s"),
        ("msgstr[0]", "eine Datei"),
        ("msgstr[1]", "%d Dateien"),
        ("msgstr[2]", "%d Dateien"),
        ("msgstr", 'Sag "ja"\\.\nZwei Zeilen.\n'),
    ]
    untouched = [line for line in MESSAGES.splitlines() if not re.fullmatch(r'msgstr(\[\d\])? ""', line)]
    assert [line for line in untouched if line not in written.splitlines()] == []
    assert open_document("de.po", written.encode()).sentences == []


def test_a_language_with_one_form_says_the_plural() -> None:
    text = 'msgid ""\nmsgstr "Plural-Forms: nplurals=1; plural=0;\\n"\n\nmsgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""'
    document = open_document("ja.po", text.encode())
    assert document.sentences == ["%d dogs"]
    assert document.put_together(["犬%d匹"]).data.decode().endswith('msgstr[0] "犬%d匹"')


def test_line_ends_of_messages_are_kept() -> None:
    data = MESSAGES.replace("\n", "\r\n").encode()
    written = translated("de.po", data).data
    assert written.count(b"\n") == written.count(b"\r\n") > data.count(b"\r\n")


@given(st.text(alphabet=st.sampled_from('ab"\\\n\t\r %s.é')))
def test_any_message_is_quoted_so_that_it_is_read_as_it_was(text: str) -> None:
    source = f"x{text}"
    quoted = (
        source.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    )
    document = open_document("a.po", f'msgid "{quoted}"\nmsgstr ""\n'.encode())
    assert document.readings[0].page == source
    written = document.put_together(document.sentences).data.decode()
    assert messages(written) == [("msgid", source), ("msgstr", source)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", r"a.po:1: 'hello' is no line of a .po file"),
        ('msgid "a"\nmsgid "b"\nmsgstr ""\n', r"a.po:1: this message has no msgstr"),
        ("# nothing\n", r"a.po holds no messages"),
        (
            'msgid ""\nmsgstr "charset=ISO-8859-2\\n"\n',
            r"a.po says that its charset is ISO-8859-2; convert it: msgconv",
        ),
    ],
)
def test_wrong_messages_are_refused_with_what_was_seen(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        open_document("a.po", text.encode())


# ---------------------------------------------------------------- tables, pages and plain text


def test_one_column_of_a_table_is_translated() -> None:
    assert translated("t.tsv", TABLE.encode(), "en").data.decode() == (
        "id\ten\tde\n1\tTbbq qnl.\t\n\n2\tUbj ner lbh? Svar.\tx\n"
    )
    assert translated("t.tsv", b"a\tb\nc\td", "2").data == b"a\to\nc\tq"


def test_a_translation_cannot_open_a_cell() -> None:
    document = open_document("t.tsv", b"one\ttwo\n")
    assert document.put_together(["x\ty\nz"]).data == b"x y z\ttwo\n"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("fr", r"t.tsv:1: no column called 'fr' in the first line; it has 'id', 'en', 'de'"),
        ("4", r"t.tsv:1: 3 columns, but column 4 is wanted"),
        ("0", r"no column 0 in t.tsv"),
    ],
)
def test_a_column_that_is_not_there_is_refused(column: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        open_document("t.tsv", TABLE.encode(), column=column)


def test_a_page_that_declares_an_older_encoding_gets_references() -> None:
    page = '<meta charset="iso-8859-1"><p>hello</p>'
    assert open_document("a.html", page.encode()).put_together(["grün 我"]).data == (
        b'<meta charset="iso-8859-1"><p>gr&#252;n &#25105;</p>'
    )
    utf8 = open_document("a.html", page.replace("iso-8859-1", "utf-8").encode())
    assert utf8.put_together(["grün"]).data.endswith("<p>grün</p>".encode())


def test_warnings_say_the_line() -> None:
    document = open_document("a.txt", b"Fine.\n\n20 men came.\n")
    written = document.put_together(["Gut.", "30 kamen."])
    assert [(one.kind, one.line) for one in written.warnings] == [("number", 3)]
    assert document.lines == [1, 3]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.docx", b"PK\x03\x04", r"a.docx ends in .docx; files that can be translated end in .txt .html .htm .po .pot .srt .tsv"),
        ("notes", b"", r"notes ends in no suffix"),
        ("a.txt", b"PK\x03\x04rest", r"a.txt is an office document or another zip archive"),
        ("a.txt", b"%PDF-1.7", r"a.txt is a PDF document"),
        ("a.txt", b"one\ntwo caf\xe9\n", r"a.txt:2: not UTF-8 \(bytes e9 0a\)"),
        ("a.html", b"a\0b\0", r"a.html holds zero bytes"),
        ("a.txt", codecs.BOM_UTF16_LE + b"a", r"a.txt:1: not UTF-16-LE"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_with_what_was_seen(name: str, data: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        open_document(name, data)
