"""Watching a corpus: what a run must cover next, told as soon as its files have come to rest.

Where the system watches folders one by one (Linux), those that hold no sources are not watched at all, however much
goes on in them; elsewhere a tree is watched whole and what does not concern the index is passed over. Notifications
can be lost, so a run over everything comes now and then in any case; where there are none, more often.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

from watchfiles import awatch

from ragpilot.config import CorpusSettings
from ragpilot.errors import RootError
from ragpilot.ingest.watch import place_of
from ragpilot.ingest.watch_look import Look, can_be_asked_for, look

STOP_SECONDS: Final = 6.0
"""More than notifications take to notice that nobody wants them."""
QUIET_SECONDS: Final = 0.15
"""Files are at rest when none has changed for so long."""
LONGEST_SECONDS: Final = 0.6
"""The longest that a run waits for that."""
LOCK_SECONDS: Final = 10.0
"""The longest that a run waits for git, which holds its index while it checks out."""
REST_SECONDS: Final = 0.5
"""The longest pause after a run; a shorter run is followed by a shorter pause."""
ROOTS_SECONDS: Final = 1.0
"""How often the roots are looked at: one that goes, or comes back as another folder, sends no word of it."""
WHOLE_SECONDS: Final = 600.0
"""A run over everything comes at least so often, for what no notification told."""
DEAF_SECONDS: Final = 10.0
"""The same while the system gives no notifications."""

_ONE_BY_ONE: Final = sys.platform.startswith("linux")

logger = logging.getLogger(__name__)


class CorpusWatcher:
    """Watches one corpus, or ``path`` in it. ``say`` is given what the user should know, each thing once."""

    def __init__(
        self,
        corpus: CorpusSettings,
        state: Path,
        *,
        path: Path | None = None,
        say: Callable[[str], None] = logger.info,
        one_by_one: bool = _ONE_BY_ONE,
    ) -> None:
        self._corpus = corpus
        self._state = state
        self._path = path
        self._say = say
        self._one_by_one = one_by_one
        self._seen: Look | None = None
        self._listening: _Listening | None = None
        self._deaf = self._deafness_told = False
        self._changes: set[str] = set()
        self._everything = True
        self._news = asyncio.Event()
        self._last_whole = 0.0

    async def places(self) -> AsyncGenerator[Path | None, None]:
        """What runs must cover, one after the other; None: everything. The first is everything, at once.

        Whoever reads this runs over a place and then asks for the next; what changes meanwhile is in it. Raises
        RootError where a root is missing at the beginning; later, its return is waited for.
        """
        try:
            await self._look_again()
            while True:
                place = await self._next()
                if place is not None or self._everything:
                    started = monotonic()
                    if self._everything:
                        self._everything, self._last_whole = False, started
                    yield None if place is None else Path(place)
                    await asyncio.sleep(min(REST_SECONDS, monotonic() - started))
                await self._rest()
        finally:
            await self._stop_listening()

    async def _next(self) -> str | None:
        """The place of all changes so far; None where there are none that count, or ``_everything`` does."""
        changes = self._take()
        tree = self._sight.tree
        if not self._everything and not all(map(tree.is_known, changes)):
            try:
                await self._look_again(renewed=not tree.folders.isdisjoint(changes))
            except RootError:
                self._everything = True
            tree = self._sight.tree
        if self._everything:
            if self._last_whole:
                await self._return_of_roots()
            return None
        changes = set(filter(tree.concerns, changes))
        if not changes:
            return None
        place = await asyncio.to_thread(place_of, tree, changes, stands=can_be_asked_for)
        self._everything = place is None
        return place

    def _take(self) -> set[str]:
        changes, self._changes = self._changes, set()
        self._news.clear()
        return changes

    @property
    def _sight(self) -> Look:
        if self._seen is None:
            raise RuntimeError("the watcher has not looked yet")
        return self._seen

    # --- waiting

    async def _rest(self) -> None:
        """Return when something has changed and come to rest, or it is time for a run over everything."""
        while not await self._heard(ROOTS_SECONDS):
            patience = DEAF_SECONDS if self._deaf else WHOLE_SECONDS
            if monotonic() - self._last_whole > patience or await asyncio.to_thread(self._sight.is_outdated):
                self._everything = True
                return
        first = monotonic()
        while monotonic() - first < LOCK_SECONDS:
            self._news.clear()
            at_rest = not await self._heard(QUIET_SECONDS) or monotonic() - first > LONGEST_SECONDS
            if at_rest and not await asyncio.to_thread(self._sight.is_locked):
                return

    async def _heard(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        return self._news.is_set()

    async def _return_of_roots(self) -> None:
        """Look again, however long a root is missing."""
        missing = False
        while True:
            try:
                await self._look_again(renewed=True)
            except RootError as error:
                if not missing:
                    self._say(f"{error.message} Its return is waited for; what is indexed stays.")
                missing = True
                await asyncio.sleep(ROOTS_SECONDS)
            else:
                self._take()
                return

    # --- listening

    async def _look_again(self, *, renewed: bool = False) -> None:
        """Walk the tree, and listen to the folders that it has now. ``renewed``: also where they have the same names.

        Whoever comes after this looks at files while they are listened to, so no change falls between the two.
        """
        before = self._seen
        self._seen = await asyncio.to_thread(look, self._corpus, self._state, self._path)
        told = self._seen.folders_to_watch(one_by_one=self._one_by_one)
        same = before is not None and told == before.folders_to_watch(one_by_one=self._one_by_one)
        if same and not renewed and self._listening is not None and not self._listening.done():
            return
        self._deaf = False
        old, self._listening = self._listening, _Listening(self._listen, told)
        await asyncio.sleep(0)  # the new one listens from its first step on
        if old is not None:
            await old.end()

    async def _listen(self, folders: Sequence[str], stop: asyncio.Event) -> None:
        try:
            async for found in awatch(
                *folders,
                stop_event=stop,
                watch_filter=None,
                step=50,
                debounce=300,
                recursive=not self._one_by_one,
                ignore_permission_denied=True,
            ):
                tree = self._sight.tree
                self._hear({path for _, path in found if tree.concerns(path)})
        except* FileNotFoundError:  # a folder went between the walk and this
            self._hear_everything()
        except* OSError as errors:
            self._be_deaf(str(errors.exceptions[0]))
        except* RuntimeError as errors:  # a name that is no text, of which no more is told
            logger.debug("notifications ended: %s", errors.exceptions[0])
            self._hear_everything()

    def _hear(self, changes: set[str]) -> None:
        if changes:
            self._changes |= changes
            self._news.set()

    def _hear_everything(self) -> None:
        self._everything = True
        self._news.set()

    def _be_deaf(self, reason: str) -> None:
        self._deaf = True
        if not self._deafness_told:
            self._deafness_told = True
            hint = " (fs.inotify.max_user_watches is the limit)" if self._one_by_one else ""
            every = f"{DEAF_SECONDS:.0f} s"
            self._say(f"The system gives no notifications: {reason}{hint}. Files are looked at every {every} instead.")

    async def _stop_listening(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            await listening.end()


class _Listening:
    """A task that listens to some folders until it is told to stop.

    A cancellation alone can be lost: the library takes one for its own where both come in the same moment.
    """

    def __init__(
        self, listen: Callable[[Sequence[str], asyncio.Event], Coroutine[Any, Any, None]], folders: Sequence[str]
    ) -> None:
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(listen(folders, self._stop))

    def done(self) -> bool:
        return self._task.done()

    async def end(self) -> None:
        self._stop.set()
        await asyncio.wait({self._task}, timeout=STOP_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=STOP_SECONDS)
        if self._task.done() and not self._task.cancelled():
            self._task.exception()
