import pytest

from adapter.serving.api.quoting import quoted


@pytest.mark.parametrize(
    ("text", "in_quotes"),
    [
        ("", '""'),
        ("bob", '"bob"'),
        ('a"b\\', r'"a\"b\\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\0\x1b\x7f", r'"\x00\x1b\x7f"'),
        ("é日😀", '"é日😀"'),
        ("\x85\u00a0\u2028\U000e0001", r'"\u0085\u00a0\u2028\U000e0001"'),
    ],
)
def test_what_is_not_printable_is_escaped_as_go_does(text: str, in_quotes: str) -> None:
    assert quoted(text) == in_quotes
