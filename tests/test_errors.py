"""The messages of other systems become one line."""

from py4j.protocol import Py4JError

from adapter.errors import cause_of


def test_an_error_whose_message_ended_with_the_jvm_is_named_by_its_type() -> None:
    class JavaError(Py4JError):
        def __str__(self) -> str:
            raise ConnectionRefusedError

    assert cause_of(JavaError()) == "JavaError"
    assert cause_of(Py4JError("no memory")) == "no memory"


def test_an_error_of_java_is_named_by_its_causes() -> None:
    error = Py4JError(
        "An error occurred while calling o7.getResult.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n\tat org.apache.spark\n"
        "Caused by: java.io.EOFException\n\t... 3 more\n"
    )
    expected = "org.apache.spark.SparkException: Exception thrown in awaitResult: Caused by: java.io.EOFException"
    assert cause_of(error) == expected
