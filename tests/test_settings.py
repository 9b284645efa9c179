"""Order of the sources, where each value comes from, and that nothing is ignored."""

from pathlib import Path

import pytest

from spamd import sources
from spamd.errors import ConfigError
from spamd.settings import Settings, check, load
from spamd.settings.keys import masked
from spamd.wording import HIDDEN
from tests.rights import closed, needs_root, nobody


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_any_source_the_defaults_hold_and_are_safe() -> None:
    found = load(environ={})

    assert found.settings.relay.listen == ("127.0.0.1:8025",)
    assert found.settings.decision.reject is False
    assert found.settings.feedback.accounts == ()
    assert found.settings.web.listen == ()
    assert found.origin("relay.listen") == "default"


def test_each_source_beats_the_next(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        '[log]\nlevel = "error"\nformat = "json"\n[relay]\nhostname = "file"\nworkers = 4\n'
    )
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ("SPAMD_RELAY__HOSTNAME", "spamd_log__format", "spamd_log__level"):
        (secrets / name).write_text("console\n" if "format" in name else "debug\n")
    environ = {
        "SPAMD_SECRETS": str(secrets),
        "SPAMD_LOG__LEVEL": "warning",
        "SPAMD_LOG__FORMAT": "json",
    }

    found = load(file, ["log.level=info"], environ)

    assert found.settings.log.level == "info"
    assert found.origin("log.level") == "--set"
    assert found.settings.log.format == "json"
    assert found.origin("log.format") == "SPAMD_LOG__FORMAT"
    assert found.settings.relay.hostname == "debug"
    assert found.origin("relay.hostname") == str(secrets / "SPAMD_RELAY__HOSTNAME")
    assert found.settings.relay.workers == 4
    assert found.origin("relay.workers") == str(file)
    assert found.origin("relay.listen") == "default"


def test_one_key_of_a_section_leaves_the_others_at_their_defaults() -> None:
    found = load(environ={"SPAMD_RELAY__WORKERS": "3"})

    assert found.settings.relay.workers == 3
    assert found.settings.relay.listen == Settings().relay.listen


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("127.0.0.1:25", ("127.0.0.1:25",)),
        ('["127.0.0.1:25", "[::1]:25"]', ("127.0.0.1:25", "[::1]:25")),
    ],
)
def test_a_list_of_texts_may_be_one_text(text: str, value: tuple[str, ...]) -> None:
    assert load(environ={"SPAMD_RELAY__LISTEN": text}).settings.relay.listen == value


def test_a_list_of_tables_may_be_json_in_a_variable(tmp_path: Path) -> None:
    accounts = f'[{{"maildir": "{tmp_path}", "user": "me"}}]'

    found = load(environ={"SPAMD_FEEDBACK__ACCOUNTS": accounts})

    assert found.settings.feedback.accounts[0].maildir == tmp_path


@pytest.mark.parametrize("text", ["1", "true", "Yes", "on"])
def test_true_has_several_spellings_in_a_variable(text: str) -> None:
    assert load(environ={"SPAMD_DECISION__REJECT": text}).settings.decision.reject is True


def test_a_secret_file_that_is_no_setting_is_named_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "spamd_password").write_text("x")

    with pytest.raises(ConfigError, match=f"^{tmp_path}/spamd_password is not a setting"):
        load(environ={"SPAMD_SECRETS": str(tmp_path)})


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        (
            {"SPAMD_RELAY__LISTN": "x"},
            "SPAMD_RELAY__LISTN: relay.listn is not a setting; did you mean relay.listen?",
        ),
        (
            {"SPAMD_WORKERS": "2"},
            "SPAMD_WORKERS is not a setting: variables are called SPAMD_SECTION__KEY",
        ),
        (
            {"SPAMD_RELAY__WORKERS": "many"},
            'SPAMD_RELAY__WORKERS: relay.workers must be a whole number, not "many"',
        ),
        (
            {"SPAMD_DATABASE__URL": "mysql://user:secret@host/x"},
            "SPAMD_DATABASE__URL: database.url must begin with sqlite:/// or postgresql://",
        ),
        (
            {"SPAMD_CONFIG": "missing.toml"},
            "missing.toml: the settings file can't be read: No such file or directory",
        ),
        (
            {"SPAMD_SECRETS": "missing"},
            "missing: the secret can't be read: No such file or directory",
        ),
    ],
)
def test_a_wrong_variable_is_named(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environ=environ)

    assert str(caught.value) == sentence


def test_variables_that_container_engines_set_by_themselves_are_no_typos() -> None:
    links = {
        "SPAMD_SERVICE_HOST": "10.0.0.1",
        "SPAMD_SERVICE_PORT_SMTP": "25",
        "SPAMD_PORT": "tcp://10.0.0.1:25",
        "SPAMD_PORT_25_TCP_ADDR": "10.0.0.1",
    }

    assert load(environ=links).origins == {}


@pytest.mark.parametrize("override", ["relay.workers", "workers=2", "relay.wokers=2"])
def test_a_wrong_override_is_named(override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        load(overrides=[override], environ={})


def test_a_value_that_a_stronger_source_replaces_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[relay]\nworkers = "two"\n')

    assert load(file, ["relay.workers=2"], {}).settings.relay.workers == 2


def test_the_settings_file_in_the_current_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/spamd.toml").write_text("[relay]\nworkers = 2\n")

    found = load(environ={})

    assert (found.file, found.settings.relay.workers) == (Path("config/spamd.toml"), 2)


def test_j12_the_file_of_the_installation_comes_before_that_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/spamd.toml").write_text("[relay]\nworkers = 2\n")
    system = tmp_path / "system.toml"
    system.write_text("[relay]\nworkers = 3\n")
    monkeypatch.setattr(sources, "SYSTEM_FILE", str(system))

    found = load(environ={})

    assert (found.settings.relay.workers, found.read_from) == (3, str(system))


def test_the_settings_file_of_a_stranger_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/spamd.toml").write_text("[relay]\nworkers = 2\n")
    monkeypatch.setattr("os.geteuid", lambda: 12345)

    assert load(environ={}).file != Path("config/spamd.toml")


@needs_root
def test_f9_a_system_file_that_may_not_be_looked_for_is_an_error_not_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = closed(tmp_path) / "spamd.toml"
    monkeypatch.setattr(sources, "SYSTEM_FILE", str(file))

    with nobody(), pytest.raises(ConfigError, match=f"{file}: the settings file can't be read"):
        load(environ={})


def test_a_domain_with_dots_is_a_key_of_the_routes(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[next_hop.routes]\n"example.org" = "smtp://127.0.0.1:25"\n')

    routes = load(file, environ={}).settings.next_hop.routes

    assert routes == {"example.org": "smtp://127.0.0.1:25"}


def test_passwords_are_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        '[database]\nurl = "postgresql://spamd:hunter2@db/spamd"\n'
        '[[feedback.accounts]]\nhost = "localhost"\nuser = "me"\npassword = "hunter2"\n'
    )

    shown = dict(load(file, environ={}).shown())

    assert "hunter2" not in repr(shown)
    assert shown["database.url"] == f"postgresql://spamd:{HIDDEN}@db/spamd"


def test_a_wrong_value_of_a_password_is_not_in_the_sentence(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[[feedback.accounts]]\nhost = "x"\nuser = "me"\npassword = ["hunter2"]\n')

    _, faults = check(file, environ={})

    assert any("password must be" in fault for fault in faults)
    assert "hunter2" not in " ".join(faults)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().relay = Settings().relay


def test_masking_keeps_what_is_no_secret() -> None:
    assert masked("smtp://mail:25", "url") == "smtp://mail:25"
    assert masked("", "password") == ""
    assert masked(64, "tokenizer.limits.token_chars") == 64
    assert masked("/etc/p", "password_file") == "/etc/p"
