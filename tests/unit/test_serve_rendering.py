"""How templates render text."""

from fixloop.serve.rendering import coded


def test_text_in_backticks_is_code_and_everything_is_escaped() -> None:
    assert coded("use `a <b>` & `c") == "use <code>a &lt;b&gt;</code> &amp; `c"
