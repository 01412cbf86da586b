"""What a real code tells of itself."""


class Code:
    """One real code: how its users get, build and test it."""

    name = ""  # of its folder and its test
    label = ""  # as in the page
    built = ""  # how, in a few words for the page
    needs = ()  # names of codes that have to be built before, for the same MPI

    def version(self, place):
        """Of what was unpacked."""
        raise NotImplementedError

    def fetch(self, place):
        """Puts the source into place.source; raises fetch.Missing where it cannot be had."""
        raise NotImplementedError

    def build(self, place):
        raise NotImplementedError

    def build_tests(self, place):
        """What the tests need and the timed run does not."""

    def tests(self, place):
        """Tests, in their order."""
        raise NotImplementedError

    def timed(self, place):
        """A Timed, or None."""
        del place

    def version_of_tar(self, place, start):
        """The version in the name of a tar file of Debian."""
        del self
        tar = next(iter(sorted(place.downloads.glob(f"{start}_*.orig.tar.*"))))
        return tar.name.removeprefix(f"{start}_").partition(".orig.")[0].partition("+")[0]
