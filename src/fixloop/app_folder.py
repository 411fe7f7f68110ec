"""Where the application's folders lie (`workers/`, `workflows/`, `config/`).

Finds them; never imports from them and never touches `sys.path`.
"""

from pathlib import Path

__all__ = ["app_folder"]


def app_folder() -> Path:
    """The folder that holds `workers/`: packed in an installed wheel, at the root in a checkout."""
    here = Path(__file__).resolve().parent
    packed = here / "_app"
    return packed if packed.is_dir() else here.parent.parent
