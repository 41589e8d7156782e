def test_x(site):
    from tests.host.support import model_source
    site.plugin("a", model_source())
    print(site.installed())
