# ruff: noqa: E501 - a style sheet
"""The look of a report: that of the pages in the light theme, and on paper."""

CSS = """
*{box-sizing:border-box}
body{margin:0;background:#f3f5f8;color:#17202b;font:14px/1.45 Inter,"Segoe UI",system-ui,-apple-system,"Noto Sans CJK SC",
"Microsoft YaHei","PingFang SC",sans-serif;-webkit-print-color-adjust:exact;print-color-adjust:exact}
main{max-width:1180px;margin:0 auto;padding:20px 16px 40px;display:grid;gap:14px;grid-template-columns:repeat(12,1fr)}
header{grid-column:1/-1;display:flex;gap:12px;align-items:baseline;flex-wrap:wrap}
h1{font-size:22px;margin:0}h2{font-size:15px;margin:0 0 10px}h2 small{font-weight:400;color:#566273;font-size:12.5px;margin-left:6px}
.pill{border:1px solid #e1e6ec;background:#fff;border-radius:999px;padding:2px 10px;color:#566273;font-size:12.5px}
.right{margin-left:auto;color:#566273;font-size:12.5px}
.card{background:#fff;border:1px solid #e1e6ec;border-radius:10px;padding:14px 16px;box-shadow:0 1px 2px rgba(16,24,40,.05);
break-inside:avoid;min-width:0}
.all{grid-column:1/-1}.half{grid-column:span 6}.tiles{grid-column:1/-1;display:grid;gap:12px;grid-template-columns:repeat(5,1fr)}
.tile b{display:block;font-size:25px;line-height:1.25;font-variant-numeric:tabular-nums}.tile span{color:#566273;font-size:12.5px;display:block}
.mark{grid-column:1/-1;background:#d98200;color:#fff;border-radius:8px;padding:8px 14px;font-weight:600;letter-spacing:.02em}
.banner{grid-column:1/-1;border:1px solid #ecd7ab;background:#fff4e0;border-radius:10px;padding:10px 16px}
.banner.good{border-color:#bcd8ee;background:#e8f2fb}.banner strong{margin-right:8px}
ul{margin:6px 0 0;padding-left:18px;color:#3b4754;columns:2;column-gap:36px}li{margin:2px 0;break-inside:avoid}
svg{width:100%;height:auto;display:block;font-family:inherit}svg.share{width:120px;height:8px}
.wrap{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13px}
th{color:#566273;font-weight:500;text-align:left;padding:4px 8px;border-bottom:1px solid #e1e6ec;vertical-align:bottom}
td{padding:5px 8px;border-bottom:1px solid #eef1f5;vertical-align:top;overflow-wrap:anywhere}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}
tr.total td{font-weight:600;border-top:2px solid #c5ccd6;border-bottom:0}tr.apart td{color:#566273}
.muted{color:#566273}.stale{color:#b42318;font-weight:600}footer{grid-column:1/-1;color:#566273;font-size:12.5px}
@media (max-width:900px){.half{grid-column:1/-1}.tiles{grid-template-columns:repeat(2,1fr)}}
@media print{body{background:#fff}main{padding:0;max-width:none}.card,.banner{box-shadow:none}@page{size:A4 landscape;margin:12mm}
thead{display:table-header-group}tr{break-inside:avoid}.card.long{break-inside:auto}}
"""
