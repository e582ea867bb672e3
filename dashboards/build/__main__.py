"""Write the dashboards, and copy them and the rules into the chart: run `python -m dashboards.build`."""

import shutil
import sys

from dashboards.build.output import CHART_FILES, FOLDER, RULES, documents


def main() -> None:
    """Write every file and print its path."""
    (CHART_FILES / "dashboards").mkdir(parents=True, exist_ok=True)
    (CHART_FILES / "rules").mkdir(parents=True, exist_ok=True)
    for name, text in documents().items():
        for path in (FOLDER / name, CHART_FILES / "dashboards" / name):
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    for rules in RULES:
        sys.stdout.write(f"{shutil.copyfile(rules, CHART_FILES / 'rules' / rules.name)}\n")


if __name__ == "__main__":
    main()
