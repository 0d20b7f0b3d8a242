/* The table of jobs: how values read, how cells look, and its search, sort and filters kept in the address. */
(function () {
  "use strict";
  const NONE = "n/a";
  const chinese = () => document.documentElement.lang.startsWith("zh");
  const known = (value) => typeof value === "number" && Number.isFinite(value);

  const ZH = {
    noRowsToShow: "没有匹配的作业", noMatchingRows: "没有匹配的作业", loadingOoo: "加载中…", filterOoo: "筛选…",
    equals: "等于", notEqual: "不等于", lessThan: "小于", greaterThan: "大于", lessThanOrEqual: "小于等于",
    greaterThanOrEqual: "大于等于", inRange: "介于", inRangeStart: "从", inRangeEnd: "到", contains: "包含",
    notContains: "不包含", startsWith: "开头是", endsWith: "结尾是", blank: "空", notBlank: "非空",
    andCondition: "且", orCondition: "或", applyFilter: "应用", resetFilter: "重置", clearFilter: "清除",
    pinColumn: "固定列", pinLeft: "固定在左侧", pinRight: "固定在右侧", noPin: "不固定", autosizeThisColumn: "自动列宽",
    autosizeAllColumns: "全部自动列宽", resetColumns: "重置列", copy: "复制", sortAscending: "升序", sortDescending: "降序",
    sortUnSort: "取消排序", columnFilter: "列筛选", ariaSortableColumn: "按回车排序", ariaFilterValue: "筛选值",
    ariaFilterFromValue: "筛选起始值", ariaFilterToValue: "筛选结束值", ariaFilteringOperator: "筛选条件",
  };

  window.dashAgGridFunctions = Object.assign(window.dashAgGridFunctions || {}, {
    percent: (value) => (known(value) ? (value * 100).toFixed(1) + "%" : NONE),
    mfu: (data) => (known(data.mfu) ? (data.short ? "▼ " : data.estimate ? "≈ " : "") + (data.mfu * 100).toFixed(1) + "%" : NONE),
    hours: (value) => (known(value) ? value.toLocaleString("en-US", { maximumFractionDigits: value < 10 ? 1 : 0 }) : NONE),
    count: (value) => (known(value) ? value.toLocaleString("en-US") : NONE),
    localeText: (params) => (chinese() && ZH[params.key]) || params.defaultValue,
  });

  const e = (...parts) => window.React.createElement(...parts);
  const icon = (name) => e("span", { className: "ic ic-" + name, "aria-hidden": "true" });
  const STATES = { running: ["check", "good"], waiting: ["info", "info"], stalled: ["warning", "warning"], ended: ["ended", "muted"] };

  /* A page's path with the settings of the reader that stand in the address. */
  function address(path) {
    const here = new URLSearchParams(location.search), kept = new URLSearchParams();
    for (const name of ["range", "from", "to", "theme", "lang", "zone", "cluster", "team", "kiosk"]) { if (here.has(name)) { kept.set(name, here.get(name)); } }
    return kept.size ? path + "?" + kept : path;
  }

  function runs(values) {
    const parts = [[]];
    values.forEach((value, i) => { if (known(value)) { parts[parts.length - 1].push([i, value]); } else { parts.push([]); } });
    return parts.filter((part) => part.length);
  }

  function Trend(props) {
    const values = (props.value || "").match(/../g)?.map((point) => (point === ".." ? null : parseInt(point, 36) / 1000)) || [];
    const numbers = values.filter(known);
    if (numbers.length < 2) { return e("span", { className: "muted" }, NONE); }
    const w = 68, h = 22, high = Math.max(...numbers) || 1, low = Math.min(0, ...numbers);
    const x = (i) => ((i * w) / (values.length - 1)).toFixed(1);
    const y = (v) => (h - 2 - ((v - low) / (high - low || 1)) * (h - 4)).toFixed(1);
    const lines = runs(values).map((part, key) => e("polyline", {
      key, points: part.map(([i, v]) => x(i) + "," + y(v)).join(" "), fill: "none", stroke: "var(--mfu)", strokeWidth: 1.4,
    }));
    const label = (numbers[numbers.length - 1] * 100).toFixed(1) + "%";
    return e("svg", { width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": label, className: "trend" }, lines);
  }

  window.dashAgGridComponentFunctions = Object.assign(window.dashAgGridComponentFunctions || {}, {
    FlopwatchJob: (props) => e("a", { href: address(props.data.href), className: "g-name", title: props.data.name + " · " + props.data.id }, props.value),
    FlopwatchState: (props) => {
      const [shape, tone] = STATES[props.data.state_code] || ["info", "muted"];
      return e("span", { className: "sev sev-" + tone }, icon(shape), e("span", null, props.value));
    },
    FlopwatchBadge: (props) => e("span", { className: props.data.mfu === null ? "muted" : "badge" }, props.value),
    FlopwatchTrend: Trend,
    FlopwatchCause: (props) => (props.data.severity
      ? e("span", { className: "sev sev-" + props.data.severity }, icon(props.data.severity), e("span", null, props.value))
      : e("span", { className: "muted" }, props.value || NONE)),
  });

  /* Address ↔ table. */
  function replace(change) {
    const q = new URLSearchParams(location.search);
    change(q);
    history.replaceState(history.state, "", location.pathname + "?" + q.toString());
  }

  function put(q, name, value) { if (value) { q.set(name, value); } else { q.delete(name); } }

  function keep(api) {
    const sort = api.getColumnState().filter((column) => column.sort)
      .sort((a, b) => a.sortIndex - b.sortIndex).map((column) => column.colId + ":" + column.sort).join(",");
    const filters = api.getFilterModel();
    replace((q) => { put(q, "sort", sort); put(q, "filter", Object.keys(filters).length ? JSON.stringify(filters) : ""); });
  }

  function restore(api) {
    const q = new URLSearchParams(location.search);
    const state = (q.get("sort") || "waste:desc").split(",").map((part, sortIndex) => {
      const [colId, sort] = part.split(":");
      return { colId, sort: sort === "asc" ? "asc" : "desc", sortIndex };
    });
    api.applyColumnState({ state, defaultState: { sort: null } });
    try { api.setFilterModel(JSON.parse(q.get("filter") || "null")); } catch { api.setFilterModel(null); }
  }

  /* The columns come with the first answer; sort and filters of the address can only be applied to them then. */
  function bind(api) {
    let restored = false;
    const whenReady = () => {
      if (restored || !api.getColumns() || !api.getColumns().length) { return; }
      restored = true;
      restore(api);
      api.addEventListener("sortChanged", () => keep(api));
      api.addEventListener("filterChanged", () => keep(api));
    };
    api.addEventListener("newColumnsLoaded", () => setTimeout(whenReady));
    api.addEventListener("cellKeyDown", (event) => {
      if (event.event.key === "Enter" && event.data) { window.dash_clientside.flopwatch.go(address(event.data.href)); }
    });
    setTimeout(whenReady);
  }

  let bound = null;
  function table(value, gridId) {
    const first = window.dash_clientside.callback_context.triggered.every((one) => !one.prop_id.startsWith("jobs-search."));
    const words = first ? new URLSearchParams(location.search).get("q") || "" : value || "";
    window.dash_ag_grid.getApiAsync(gridId).then((api) => {
      if (bound !== api) { bound = api; bind(api); }
      api.setGridOption("quickFilterText", words);
    });
    replace((q) => put(q, "q", words));
    return first ? words : window.dash_clientside.no_update;
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.flopwatch = Object.assign(window.dash_clientside.flopwatch || {}, { table });
})();
