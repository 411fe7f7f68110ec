"""Which broker and which state this process was given."""

from fixloop.errors import UsageError
from fixloop.servers.settings import RedisUrls, load_settings


def named_urls() -> RedisUrls:
    """Broker and state as this process' environment names them."""
    urls = load_settings().urls()
    if urls is None:
        raise UsageError("no Redis is named; set FIXLOOP_STATE_URL")
    return urls
