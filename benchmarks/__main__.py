"""`python -m benchmarks [NAME …]`: run all benchmarks, or those that are named, and print their tables."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

HELPERS = {"tables", "__main__"}


def main(names: list[str]) -> int:
    """Each module of this package is a benchmark; its ``run()`` gives a list of tables."""
    known = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in HELPERS)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    for name in names or known:
        for table in importlib.import_module(f"benchmarks.{name}").run():
            print(f"{table}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
