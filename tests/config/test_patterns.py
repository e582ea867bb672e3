import re

import pytest

from adapter.config.patterns import LONGEST_PATTERN, matcher


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("orders", "orders", True),
        ("orders", "orders-eu", False),
        ("orders", "my-orders", False),
        ("a|ab", "ab", True),
        ("orders$", "orders\n", False),
        (".*", "", True),
        (r"\w+", "bücher", True),
        ("(?i)ORDERS", "orders", True),
        ("team-[a-z]+-(raw|clean)", "team-a-clean", True),
    ],
)
def test_a_pattern_matches_the_whole_name(pattern: str, name: str, matches: bool) -> None:
    assert matcher(pattern)(name) is matches


def test_a_pattern_is_compiled_once_however_many_there_are() -> None:
    patterns = [f"orders-{number}" for number in range(1000)]
    assert [matcher(pattern) for pattern in patterns] == [matcher(pattern) for pattern in patterns]


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*a){20}b"])
def test_no_pattern_backtracks(pattern: str) -> None:
    """Python's `re` takes seconds for 25 characters, and twice as long for each further one."""
    assert not matcher(pattern)("a" * 249)  # Kafka's longest name of a topic


@pytest.mark.parametrize(
    ("pattern", "cause"),
    [
        ("(a", "unclosed group"),
        ("a)|(b", "unopened group"),
        ("(?=a)b", "look-around, including look-ahead and look-behind, is not supported"),
        (r"(a)\1", "backreferences are not supported"),
        ("a{1000}{1000}", "Compiled regex exceeds size limit of 10485760 bytes."),
        ("a" * (LONGEST_PATTERN + 1), f"it has {LONGEST_PATTERN + 1} characters, more than {LONGEST_PATTERN}"),
    ],
)
def test_an_invalid_pattern_has_a_cause(pattern: str, cause: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(cause)}$"):
        matcher(pattern)
