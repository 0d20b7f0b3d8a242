"""The cards of a page about one node or one GPU: graphs and lists with their heads, and where a refresh puts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dash import html
from dash.development.base_component import Component

from flopwatch_dashboard.components import parts
from flopwatch_dashboard.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemCards:
    """The cards by name; ids begin with the page's."""

    page: str
    graphs: tuple[str, ...]
    lists: tuple[str, ...]

    def empty(self) -> dict[str, Component]:
        """The cards without data."""
        page = self.page
        cards = {
            name: parts.card(f"{page}-{name}", parts.graph(f"{page}-{name}-g"), kind="plot")
            for name in self.graphs
        }
        for name in self.lists:
            content = html.Div(id=f"{page}-{name}", className="scroll", tabIndex="0")
            cards[name] = parts.card(
                f"{page}-{name}", content, kind="list nd-gpus" if name == "gpus" else "list"
            )
        return cards

    def skeleton(self, rows: Sequence[Component]) -> list[Component]:
        """The page: that there is no such thing, or heading, tiles and rows of cards."""
        page = self.page
        head = [html.Div(id=f"{page}-heading"), html.Section(id=f"{page}-tiles", className="kpis tiles-6")]
        body = html.Div([*head, *rows], id=f"{page}-body", className="stack-v")
        return [html.Div(id=f"{page}-gone"), body]

    def heads(self, subs: Mapping[str, str], view: View) -> dict[str, list[Component]]:
        """The heads of all cards, with what stands small beside a title; a graph's curves can be saved."""
        page = self.page
        return {
            f"{name}-head": parts.head(
                f"{page}-{name}",
                view.t(f"nodes.card.{name}"),
                subs.get(name, ""),
                *((parts.save_csv(f"{page}-{name}-g", view),) if name in self.graphs else ()),
            )
            for name in (*self.graphs, *self.lists)
        }

    def parts(self) -> dict[str, tuple[str, str]]:
        """Where each part of an answer goes."""
        page = self.page
        return {
            "gone": (f"{page}-gone", "children"),
            "body": (f"{page}-body", "className"),
            "heading": (f"{page}-heading", "children"),
            "tiles": (f"{page}-tiles", "children"),
            **{name: (f"{page}-{name}-g", "figure") for name in self.graphs},
            **{f"{name}-aria": (f"{page}-{name}-g-wrap", "aria-label") for name in self.graphs},
            **{name: (f"{page}-{name}", "children") for name in self.lists},
            **{f"{name}-head": (f"{page}-{name}-head", "children") for name in (*self.graphs, *self.lists)},
        }
