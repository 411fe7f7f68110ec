"""Plays VAS offline: runs the tests, and reports what they say."""

import json
import re
import subprocess
import sys

from progress import Run


def main():
    run = Run()
    done = subprocess.run([sys.executable, "-m", "unittest"], capture_output=True, text=True, timeout=60)
    failed = re.findall(r"^(?:FAIL|ERROR): (\w+)", done.stderr, re.MULTILINE)
    total = int(re.search(r"Ran (\d+) test", done.stderr)[1])
    rate = 100 * (total - len(failed)) // total
    result = f"{total - len(failed)} of {total} tests passed"
    run.write(
        "validation.md", f"# Validation\n\n{result}.\n" + "".join(f"- {name} failed\n" for name in failed)
    )
    run.write("test-results.json", json.dumps({"tests": total, "failed": failed}, indent=2) + "\n")
    run.write("summary.md", f"# Summary\n\n{result}.\n")
    files = ("validation.md", "test-results.json", "summary.md")
    run.report(
        "failed" if failed else "success",
        "Tests failing" if failed else "All passing",
        *files,
        issues=[f"test {name} fails" for name in failed],
        test_pass_rate=f"{rate}%",
    )


if __name__ == "__main__":
    main()
