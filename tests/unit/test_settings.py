"""Settings from the environment, and Redis URLs."""

import ssl
from pathlib import Path

import pytest

from fixloop.errors import UsageError
from fixloop.machine.processes import variables_for
from fixloop.servers.broker_url import celery_settings, celery_url
from fixloop.servers.redis_url import checked_url, place_of, shown_url
from fixloop.servers.settings import RedisUrls, Settings, load_settings, redis_urls


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FIXLOOP_{name}".upper(), raising=False)


def test_by_default_redis_is_embedded_and_the_cache_is_in_the_user_s_folder(
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


def test_two_urls_separate_broker_and_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIXLOOP_BROKER_URL", "redis://one")
    monkeypatch.setenv("FIXLOOP_STATE_URL", "redis://two")

    with redis_urls(load_settings(), tmp_path) as urls:
        assert urls == RedisUrls(broker="redis://one", state="redis://two")


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
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
        ("STATE_URL", "amqp://h", "its scheme is 'amqp'"),
        ("BROKER_URL", "amqp://", "it names no host"),
        ("BROKER_URL", "amqp://h:port", "not a RabbitMQ URL"),
        ("STATE_URL", "sentinel://h:1", "write it as sentinel://user:password@host:port,host:port/service"),
        ("STATE_URL", "sentinel://h/main/zero", "its database 'zero' is not a number"),
        ("STATE_URL", "redis://h?replicas=some", "replicas='some' is not a number"),
        ("STATE_URL", "redis://h?replica_seconds=9", "at most 2"),
        ("REPLICA_SECONDS", "9", "less than or equal to 2"),
        ("TLS_CA", "/nowhere/ca.pem", "FIXLOOP_TLS_CA is '/nowhere/ca.pem': there is no such file"),
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


def test_a_socket_url_is_translated_to_celery_s_form_and_back() -> None:
    assert celery_url("unix:///run/my.sock?db=2") == "redis+socket:///run/my.sock?virtual_host=2"
    assert checked_url("redis+socket:///run/my.sock?virtual_host=2") == "unix:///run/my.sock?db=2"


def test_rabbitmq_carries_messages_only_and_the_state_needs_a_redis(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FIXLOOP_BROKER_URL", "amqp://me:secret@rabbit//")
    with (
        pytest.raises(UsageError, match="set FIXLOOP_STATE_URL to a Redis"),
        redis_urls(load_settings(), tmp_path),
    ):
        pass

    monkeypatch.setenv("FIXLOOP_STATE_URL", "redis://two")

    with redis_urls(load_settings(), tmp_path) as urls:
        assert urls == RedisUrls(broker="amqp://me:secret@rabbit//", state="redis://two")


def test_each_host_of_a_broker_is_named_to_celery_with_the_login() -> None:
    told = celery_settings("amqp://me:pw@one:1,two/shop", connect_seconds=1, answer_seconds=1)
    assert told["broker_url"] == "amqp://me:pw@one:1/shop"
    assert told["broker_transport_options"]["hosts"] == (("one", 1), ("two", 5672))
    assert (
        celery_url("sentinel://me:pw@one,two:2/main/3?replicas=1")
        == "sentinel://me:pw@one:26379/3;sentinel://me:pw@two:2/3"
    )


def test_sentinels_require_a_replica_for_each_commit_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIXLOOP_STATE_URL", "sentinel://me:pw@one,two:2/main/3")
    monkeypatch.setenv("FIXLOOP_SENTINEL_PASSWORD", "other secret")

    urls = load_settings().urls()
    assert urls is not None
    place = place_of(urls.state)

    assert (place.sentinels, place.service) == ((("one", 26379), ("two", 2)), "main")
    assert place.options == {"db": 3, "username": "me", "password": "pw"}
    assert place.sentinel_login == {"password": "other secret"}
    assert (place.replicas, place.replica_seconds) == (1, 1.0)
    assert shown_url(urls.state) == "sentinel://me:***@one,two:2/main/3"
    monkeypatch.setenv("FIXLOOP_REPLICAS", "0")
    alone = load_settings().urls()
    assert alone is not None
    assert place_of(alone.state).replicas == 0


def test_files_of_tls_are_passed_to_every_client_that_uses_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = tmp_path / "an authority.pem"
    authority.touch()
    monkeypatch.setenv("FIXLOOP_STATE_URL", "rediss://:pw@h/1")
    monkeypatch.setenv("FIXLOOP_BROKER_URL", "amqps://h")
    monkeypatch.setenv("FIXLOOP_TLS_CA", str(authority))

    urls = load_settings().urls()

    assert urls is not None
    told = celery_settings(urls.state, connect_seconds=1, answer_seconds=1)["broker_use_ssl"]
    assert told == {"ssl_cert_reqs": "required", "ssl_ca_certs": str(authority)}
    told = celery_settings(urls.broker, connect_seconds=1, answer_seconds=1)["broker_use_ssl"]
    assert (told["ca_certs"], told["cert_reqs"], told["server_hostname"]) == (
        str(authority),
        ssl.CERT_REQUIRED,
        None,
    )
    assert variables_for(urls)["FIXLOOP_STATE_URL"] == urls.state
    assert shown_url(urls.state) == "rediss://:***@h/1"


def test_tls_checks_certificates_by_default() -> None:
    assert celery_url("rediss://h/1") == "rediss://h/1?ssl_cert_reqs=required"
    assert celery_url("rediss://h/1?ssl_cert_reqs=none") == "rediss://h/1?ssl_cert_reqs=none"
