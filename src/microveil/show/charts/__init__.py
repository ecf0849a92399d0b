"""Every chart once: the report, the page, explorations and the paper's figures draw from here.

Plain data goes in (arrays, numbers, dataclasses), an Altair chart or text for a terminal comes
out; nothing here knows of plans, releases or evaluations. Modules that draw need Altair, which
`microveil[report]` installs; `palette`, `shares`, `curves` and `terminal` do without.
"""
