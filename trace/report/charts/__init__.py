"""The charts of a page, as models of Bokeh."""
