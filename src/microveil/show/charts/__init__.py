"""Every chart once: the report, the page, explorations and the paper's figures draw from here.

Modules that draw need Altair, which `microveil[report]` installs; `palette`, `histograms`,
`series`, `points` and `text_charts` do without.
"""
