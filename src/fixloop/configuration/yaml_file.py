"""YAML files of other tools, read as data."""

import warnings
from pathlib import Path
from typing import Any

from fixloop.configuration.declarations import text_of


def yaml_of(path: Path) -> Any:
    """What the file holds; None where there is none, or none that can be read."""
    text = text_of(path)
    if not text:
        return None
    # A tenth of a second, and many projects have no such file.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError, TypeError, AttributeError):
        return None
