"""The local web page: it calls the library and holds no logic of its own."""
