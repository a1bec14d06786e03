"""One link, from the loss of its channel to goodput, latency tail, watts and dollars."""
