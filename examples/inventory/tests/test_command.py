import json

from inventory.__main__ import main

WEEK = {"opening": {"tea": 5}, "minimum": {"tea": 25}, "pack": {"tea": 10}, "days": []}


def test_a_replay_is_compared_with_what_is_expected(tmp_path, capsys):
    week, expected = tmp_path / "week.json", tmp_path / "expected.json"
    week.write_text(json.dumps(WEEK))
    expected.write_text(json.dumps({"tea": 2}))

    assert main(["replay", str(week), str(expected)]) == 0

    expected.write_text(json.dumps({"tea": 3}))
    assert main(["replay", str(week), str(expected)]) == 1
    assert capsys.readouterr().out == "tea: 2 packs proposed, 3 expected\n"


def test_a_wrong_call_is_refused():
    assert main(["replay"]) == 2
