from adapter.serving.signals.near import nearest


def test_the_name_that_was_meant_is_found() -> None:
    assert nearest("order", ["payments", "orders", "clicks"]) == "orders"


def test_nothing_alike_is_nothing() -> None:
    assert nearest("zzz", ["orders"]) is None
    assert nearest("orders", []) is None


def test_of_very_many_names_the_neighbours_in_the_alphabet_are_compared() -> None:
    names = [f"job-{number:05}" for number in range(40_000)]
    assert nearest("job-31415x", names) == "job-31415"
