"""Which services there are to use."""

from __future__ import annotations

import os

from ragpilot.config import Environment
from ragpilot.types import Finding


async def survey_services(environment: Environment) -> list[Finding]:
    """Which services answer at the configured addresses, or else where such services usually are on this machine."""
    from ragpilot.adapters.survey import Addresses, survey

    settings = environment.settings
    chat, embedder, store = settings.chat, settings.embedder, settings.store
    compatible = chat.url if chat.kind == "openai" else None
    ollamas = [part.url for part in (chat, embedder) if part.kind == "ollama" or (part is chat and part.kind == "auto")]
    addresses = Addresses(
        ollama=next(filter(None, ollamas), None) or os.environ.get("OLLAMA_HOST"),
        compatible=compatible,
        compatible_key=os.environ.get(chat.api_key_env or "") if compatible else None,
        qdrant=store.url,
        qdrant_key=os.environ.get(store.api_key_env or ""),
        needed=frozenset({chat.kind, embedder.kind, store.kind} & {"ollama", "qdrant"}),
    )
    return await survey(addresses, chat_is_open=chat.kind == "auto" and chat.model is None)
