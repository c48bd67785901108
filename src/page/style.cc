// SPDX-License-Identifier: Apache-2.0
#include "page/style.h"

namespace berth::page {

const std::string_view kStyle = R"css(
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
header{display:flex;flex-wrap:wrap;align-items:baseline;gap:.3rem 1rem;padding:1rem 1.5rem;border-bottom:1px solid var(--line)}
header h1{margin:0;font-size:1.25rem;overflow-wrap:anywhere}
header p{margin:0;color:var(--muted);flex:1;overflow-wrap:anywhere}
main{padding:0 1.5rem 2rem;max-width:1500px;margin:0 auto}
section{margin-top:1.75rem}
h2{font-size:1.05rem;margin:0 0 .5rem;overflow-wrap:anywhere}
button,input{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);border-radius:5px;padding:.15rem .6rem}
button{cursor:pointer}
button:hover{border-color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.75rem;margin:1.25rem 0 0}
.figures div{background:var(--panel);border:1px solid var(--line);border-radius:7px;padding:.55rem .8rem}
.figures dt{color:var(--muted);font-size:.85rem}
.figures dd{margin:0;font-size:1.2rem;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
.figures small{display:block;color:var(--muted);font-size:.8rem}
.note{color:var(--muted);font-size:.85rem;margin:.4rem 0 0}
.scroll{overflow-x:auto;max-height:32rem;border:1px solid var(--line);border-radius:7px}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.25rem .7rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
tbody tr:last-child td{border-bottom:0}
tbody tr:hover{background:var(--panel)}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
thead th{position:sticky;top:0;background:var(--panel);padding:0}
thead th button{width:100%;border:0;border-radius:0;text-align:inherit;font-weight:600;padding:.3rem .7rem}
th[aria-sort=ascending] button::after{content:" \2191"}
th[aria-sort=descending] button::after{content:" \2193"}
.tools{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin-bottom:.5rem}
.tools output{color:var(--muted);font-size:.85rem}
.stage{position:relative;border:1px solid var(--line);border-radius:7px;overflow:hidden}
canvas{display:block;width:100%;height:470px;cursor:crosshair;touch-action:none}
.tip{position:absolute;pointer-events:none;max-width:26rem;background:var(--ground);color:var(--ink);border:1px solid var(--ink);
border-radius:5px;padding:.3rem .55rem;font-size:.85rem;white-space:pre-line;overflow-wrap:anywhere}
.tip[hidden]{display:none}
@media print{.tools,#theme,.note{display:none}.scroll{max-height:none}}
)css";

}  // namespace berth::page
