// The data of the charts is in the report.
"use strict";

drawCharts(JSON.parse(document.getElementById("data").textContent));
