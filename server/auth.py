"""Who asks: from the ``Authorization`` header of a request to an actor, and what that actor may."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from quart import request

from ragpilot.actors import resolve_actor
from ragpilot.config import Settings
from ragpilot.errors import AuthenticationError, PermissionDeniedError
from ragpilot.types import Actor, Permission
from server.origins import RawHeaders, header_values

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)


class Access:
    """Resolves actors by the configuration and, where no actors are configured, by the state folder's token.

    Once there were actors, their end does not let everybody in: then nobody gets in until the server starts anew.
    """

    def __init__(self, settings: Settings, local_token: str | None) -> None:
        self._settings = settings
        self._local_token = local_token
        self._closed = False

    @property
    def has_actors(self) -> bool:
        """Whether actors are configured; without any, who gets in is the machine's owner."""
        return self._closed or bool(self._settings.actors)

    def adopt(self, settings: Settings) -> None:
        """Resolve by these settings from now on."""
        self._closed = not settings.actors and (self._closed or bool(self._settings.actors))
        if self._closed:
            logger.warning("no actors are configured any more: nobody gets in until the server is started anew")
        self._settings = settings

    def actor(self, headers: RawHeaders) -> Actor:
        """The actor of a request. Raises AuthenticationError, which does not say what was wrong.

        A header that is there but is no single bearer token never counts as none: who tried to say who they are
        is not taken for somebody else.
        """
        if self._closed:
            raise AuthenticationError("There are no actors any more.")
        values = header_values(headers, b"authorization")
        if not values:
            return resolve_actor(self._settings, None, local_token=self._local_token)
        match = _BEARER.fullmatch(values[0])
        if len(values) > 1 or match is None:
            raise AuthenticationError("The Authorization header is not one bearer token.")
        return resolve_actor(self._settings, match["token"], local_token=self._local_token)

    def needs(
        self, permission: Permission
    ) -> Callable[[Callable[Concatenate[Actor, P], Awaitable[R]]], Callable[P, Awaitable[R]]]:
        """A view that is called with the request's actor, once it is known that the actor holds ``permission``."""

        def decorate(view: Callable[Concatenate[Actor, P], Awaitable[R]]) -> Callable[P, Awaitable[R]]:
            @wraps(view)
            async def checked(*args: P.args, **kwargs: P.kwargs) -> R:
                actor = self.actor(request.scope["headers"])
                if not actor.may(permission):
                    raise PermissionDeniedError(
                        f"The actor {actor.name!r} does not hold the permission {permission!r}, which this needs."
                    )
                return await view(actor, *args, **kwargs)

            return checked

        return decorate
