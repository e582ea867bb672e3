"""Its folder is where the tests below it find serving_builders."""
