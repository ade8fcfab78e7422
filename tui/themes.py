"""The two themes: one dark, one light, both quiet. Colours carry meaning only where a word or a mark does too."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="ragpilot-dark",
    primary="#7fb4ca",
    secondary="#98a6c4",
    accent="#d3a76a",
    warning="#d9a55b",
    error="#dd7878",
    success="#8db580",
    foreground="#d9dce3",
    background="#15171c",
    surface="#1b1e25",
    panel="#242833",
    dark=True,
    variables={
        "muted": "#979eae",
        "faint": "#555d6d",
        "footer-key-foreground": "#d3a76a",
        "footer-background": "#15171c",
        "border-blurred": "#333947",
        "border": "#7fb4ca",
        "block-cursor-background": "#2f3644",
        "block-cursor-foreground": "#eceff5",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1b1e25",
        "scrollbar": "#333947",
        "scrollbar-background": "#15171c",
    },
)

LIGHT: Final = Theme(
    name="ragpilot-light",
    primary="#20647f",
    secondary="#4d5b7c",
    accent="#8a5a13",
    warning="#8d5a00",
    error="#a83a3a",
    success="#356b2c",
    foreground="#24272e",
    background="#f7f6f2",
    surface="#efede7",
    panel="#e4e1d8",
    dark=False,
    variables={
        "muted": "#5f646e",
        "faint": "#a5a192",
        "footer-key-foreground": "#8a5a13",
        "footer-background": "#f7f6f2",
        "border-blurred": "#c9c4b6",
        "border": "#20647f",
        "block-cursor-background": "#d9e4e8",
        "block-cursor-foreground": "#14171c",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#efede7",
        "scrollbar": "#c9c4b6",
        "scrollbar-background": "#f7f6f2",
    },
)

OTHER: Final = {DARK.name: LIGHT.name, LIGHT.name: DARK.name}
"""What toggling leads to."""

VARIABLES: Final = {name: DARK.variables[name] for name in ("muted", "faint")}
"""What Textual's own themes lack: words of less weight, and marks of least."""
