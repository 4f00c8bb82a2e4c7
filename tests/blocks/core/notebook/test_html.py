"""Building blocks of what notebooks show."""

from html.parser import HTMLParser

from biella.blocks.core.notebook._html import (
    Markup,
    card,
    count_of,
    fold,
    list_problems,
    mark_names,
    paragraph,
    swatch,
    table,
)

EVIL = "<script>alert('\"&')</script>"


class Tags(HTMLParser):
    """Collects tags, and checks that each is closed."""

    def __init__(self, text):
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_names_are_text_wherever_they_stand():
    made = card(
        EVIL,
        EVIL,
        paragraph(EVIL),
        table((EVIL,), [(EVIL,), (EVIL * 9,)]),
        fold(EVIL, "x"),
        list_problems([f"`{EVIL}`", EVIL]),
        swatch('"><script>', EVIL),
    )
    tags = Tags(made)
    assert "script" not in tags.seen
    assert "".join(tags.texts).count(EVIL) >= 8
    assert not [name for name in tags.attributes if name.startswith("on")]


def test_a_table_shows_the_first_rows_and_counts_the_rest():
    made = table(("a", "b"), [(n, Markup("<i>x</i>")) for n in range(70)], numbers=(0,), shown=3)
    assert made.count("<tr>") == 4 and "… and 67 more" in made
    assert made.count("<td><i>x</i></td>") == 3 and '<td class="number">2</td>' in made
    assert "… and 97 more" in table(("a",), [(1,), (2,), (3,)], total=100)
    assert "more" not in table(("a",), [(1,)]) and table(("a",), []) == ""


def test_long_cells_are_cut_and_keep_their_text_as_a_title():
    made = table(("a",), [("x" * 500,)])
    assert made.count("x") == 119 + 500 and "…</span>" in made


def test_empty_parts_are_left_out():
    assert paragraph("") == fold("a", "") == list_problems([]) == ""
    assert "<details" not in card("a", "", "", fold("b", ""))


def test_problems_are_counted_and_name_their_blocks():
    assert mark_names("`a.b` & c") == "<code>a.b</code> &amp; c"
    many = list_problems([f"p{n}" for n in range(30)], shown=4)
    assert "30 problems" in many and many.count("<li>") == 5 and "26 more" in many
    assert "1 problem<" in list_problems(["p"])


def test_counts():
    assert count_of(1, "block") == "1 block" and count_of(0, "block") == "0 blocks"
    assert count_of(2, "body", "bodies") == "2 bodies"
