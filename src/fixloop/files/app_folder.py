"""Where the application's folders lie (`workers/`, `workflows/`, `config/`).

Finds them; never imports from them and never touches `sys.path`.
"""

from pathlib import Path


def app_folder() -> Path:
    """The folder that holds `workers/`: packed in an installed wheel, at the root in a checkout."""
    library = Path(__file__).resolve().parents[1]
    packed = library / "_app"
    return packed if packed.is_dir() else library.parents[1]
