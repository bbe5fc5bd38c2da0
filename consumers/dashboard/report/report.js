// The report's data is in the page; it is drawn once.
"use strict";

drawCharts(JSON.parse(document.getElementById("data").textContent));
