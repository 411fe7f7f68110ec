"""One of several processes that post to the same chats: commands on stdin, answers on stdout."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

from fixloop.chat.directory import apply
from fixloop.chat.events import MessageWritten
from fixloop.chat.vocabulary import Role
from fixloop.errors import RefusedError
from tests.fixtures.chat_stage import body


def main() -> None:
    names = sys.argv[1:]
    together = Barrier(len(names))
    with ThreadPoolExecutor(len(names)) as threads:
        print("ready", flush=True)
        for line in sys.stdin:
            chat, number = line.split()
            event = MessageWritten(
                Role.ENGINEER, Role.ARCHITECT, "", body(Role.ENGINEER), seq=int(number) or None
            )
            events = [event._replace(purpose=name) for name in names]
            answers = threads.map(lambda one, chat=chat: post(Path(chat), one, together), events)
            print(json.dumps(list(answers)), flush=True)


def post(chat: Path, event: MessageWritten, together: Barrier) -> str:
    together.wait()
    try:
        return apply(chat, event, datetime.now(UTC)).file
    except RefusedError as refused:
        return f"refused: {refused}"


if __name__ == "__main__":
    main()
