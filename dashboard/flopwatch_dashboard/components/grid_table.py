"""The empty AG Grid of a large table: looks and manners that all of them have."""

from typing import Any

import dash_ag_grid as dag
from dash.development.base_component import Component

THEME = (
    "themeQuartz"
    ".withParams({backgroundColor: '#ffffff', foregroundColor: '#17202b', headerBackgroundColor: '#ffffff', "
    "headerTextColor: '#566273', borderColor: '#e1e6ec', rowHoverColor: '#f6f8fa', accentColor: '#0b6fb8', "
    "fontFamily: 'inherit', fontSize: '13px', headerFontSize: '12px', spacing: 5, wrapperBorder: false, "
    "columnBorder: false, browserColorScheme: 'light'}, 'light')"
    ".withParams({backgroundColor: '#151b23', foregroundColor: '#e7ecf3', headerBackgroundColor: '#151b23', "
    "headerTextColor: '#9aa7b8', borderColor: '#252e3a', rowHoverColor: '#1b232d', accentColor: '#4aa8e8', "
    "fontFamily: 'inherit', fontSize: '13px', headerFontSize: '12px', spacing: 5, wrapperBorder: false, "
    "columnBorder: false, browserColorScheme: 'dark'}, 'dark')"
)
"""The tokens of ``theme`` in AG Grid's own words; the mode follows ``data-ag-theme-mode`` of the body."""


def grid(grid_id: str, *, row_height: int, **options: Any) -> Component:
    """The table, ``row_height`` in pixels. Rows keep their place on update because each has a string id."""
    return dag.AgGrid(
        id=grid_id,
        columnDefs=[],
        rowData=[],
        getRowId="params.data.id",
        style={"height": "100%", "width": "100%"},
        defaultColDef={"sortable": True, "resizable": True, "minWidth": 60, "cellDataType": False},
        dashGridOptions={
            "theme": {"function": THEME},
            "animateRows": False,
            "ensureDomOrder": True,
            "rowHeight": row_height,
            "headerHeight": row_height,
            "getLocaleText": {"function": "localeText(params)"},
            **options,
        },
    )
