"""Settings from the environment, and Redis URLs."""

from contextlib import closing
from pathlib import Path

import pytest
import redis
from celery import Celery

from fixloop.embedded import embedded_redis
from fixloop.errors import UsageError
from fixloop.redis_url import celery_url, checked_url, shown_url
from fixloop.settings import RedisUrls, Settings, load_settings, redis_urls


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FIXLOOP_{name}".upper(), raising=False)


def test_without_variables_redis_is_embedded_and_the_cache_is_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    settings = load_settings()

    assert settings.is_embedded
    assert settings.cache_dir == tmp_path / "fixloop"
    assert settings.allow_env == ()


@pytest.mark.parametrize("name", ["FIXLOOP_STATE_URL", "FIXLOOP_BROKER_URL"])
def test_one_url_serves_both(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(name, "redis://localhost:6390/3")

    with redis_urls(load_settings(), tmp_path) as urls:
        assert urls == RedisUrls("redis://localhost:6390/3", "redis://localhost:6390/3")

    assert list(tmp_path.iterdir()) == []


def test_two_urls_part_broker_and_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIXLOOP_BROKER_URL", "redis://one")
    monkeypatch.setenv("FIXLOOP_STATE_URL", "redis://two")

    with redis_urls(load_settings(), tmp_path) as urls:
        assert urls == RedisUrls(broker="redis://one", state="redis://two")


def test_an_empty_variable_is_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIXLOOP_STATE_URL", "")

    assert load_settings().is_embedded


def test_names_of_variables_are_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIXLOOP_ALLOW_ENV", "ANTHROPIC_API_KEY, NODE_ENV,")

    assert load_settings().allow_env == ("ANTHROPIC_API_KEY", "NODE_ENV")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "STATE_URL",
            "http://x",
            "FIXLOOP_STATE_URL is 'http://x': 'http://x' is not a Redis URL: its scheme",
        ),
        ("STATE_URL", "localhost:6379", "its scheme is 'localhost'"),
        ("BROKER_URL", "redis://h:port", "FIXLOOP_BROKER_URL is 'redis://h:port': .*[Pp]ort"),
        ("BROKER_URL", "redis://h/zero", "its database 'zero' is not a number"),
        ("BROKER_URL", "redis://", "it names no host"),
        ("BROKER_URL", "unix://run/redis.sock", "write the socket as unix:///path/to/socket"),
        (
            "REDIS_TIMEOUT_SECONDS",
            "soon",
            "FIXLOOP_REDIS_TIMEOUT_SECONDS is 'soon': input should be a valid number",
        ),
        ("REDIS_TIMEOUT_SECONDS", "0", "greater than 0"),
        ("ALLOW_ENV", "A B", "'A B' is not the name of a variable"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_name_and_value(
    name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"FIXLOOP_{name}", value)

    with pytest.raises(UsageError, match=sentence) as refused:
        load_settings()

    assert "\n" not in str(refused.value)


def test_a_password_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIXLOOP_STATE_URL", "redis://me:s3cr:et@h/zero")

    with pytest.raises(UsageError) as refused:
        load_settings()

    assert "s3cr" not in str(refused.value)
    assert shown_url("redis://:p@w@h/1") == "redis://:***@h/1"
    assert shown_url("redis://h/1") == "redis://h/1"


def test_a_socket_is_said_in_celerys_words_and_back() -> None:
    assert celery_url("unix:///run/my.sock?db=2") == "redis+socket:///run/my.sock?virtual_host=2"
    assert checked_url("redis+socket:///run/my.sock?virtual_host=2") == "unix:///run/my.sock?db=2"


def test_tls_checks_certificates_unless_told_otherwise() -> None:
    assert celery_url("rediss://h/1") == "rediss://h/1?ssl_cert_reqs=required"
    assert celery_url("rediss://h/1?ssl_cert_reqs=none") == "rediss://h/1?ssl_cert_reqs=none"


@pytest.mark.slow
def test_celery_reaches_the_same_socket_and_database_as_redis_py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "a %b ü"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))

    with embedded_redis(tmp_path) as url:
        broker = celery_url(f"{url}?db=3")
        with Celery(broker=broker).connection_for_write() as connection:
            connection.default_channel.client.set("who", "celery")
        with closing(redis.Redis.from_url(f"{url}?db=3")) as client:
            assert client.get("who") == b"celery"
        with closing(redis.Redis.from_url(url)) as client:
            assert client.get("who") is None
