"""What a template may say of a text."""

from fixloop.serve.rendering import coded


def test_what_stands_in_backticks_is_code_and_all_of_it_is_escaped() -> None:
    assert coded("use `a <b>` & `c") == "use <code>a &lt;b&gt;</code> &amp; `c"
