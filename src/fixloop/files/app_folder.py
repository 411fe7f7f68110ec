"""Finds the application's folders (`workers/`, `workflows/`, `config/`).

Never imports from them and never changes `sys.path`.
"""

from pathlib import Path


def app_folder() -> Path:
    """The folder that contains `workers/`: inside an installed wheel, at the root of a checkout."""
    library = Path(__file__).resolve().parents[1]
    packed = library / "_app"
    return packed if packed.is_dir() else library.parents[1]
