"""The commit that holds the work so far, where several agents may work beside each other."""

from fixloop.protocol.refusals import Moved


def advanced(present: str, *, base: str, tip: str) -> str:
    """
    The commit that holds the work from now on.

    Args:
        present: the one that held it so far.
        base: what an agent began from.
        tip: what it made of that; `base`, or nothing, where it changed nothing.

    Raises:
        Moved: somebody else's work lies between; nothing is lost by bringing it onto that.
    """
    if tip in ("", base):
        return present
    if base != present:
        raise Moved(f"this work was begun on commit {base[:12]}; the work so far is {present[:12]}")
    return tip
