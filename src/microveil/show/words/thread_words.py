"""Who kept a pseudonym from release to release, in a sentence for the data holder."""

from microveil.release.persistent import LastingRelease


def threads_statement(release: LastingRelease) -> str:
    """Say how many persons kept their pseudonym, and how many got one.

    Examples
    --------
    >>> one = LastingRelease(id="", made="", anonymity=10, kept=774, new=43, cut=57, absent=43)
    >>> threads_statement(one)
    '774 persons keep their pseudonym, 43 are new, and 57 get another, since too few share their \
history.'
    """
    new = f"{release.new:,} {'is' if release.new == 1 else 'are'} new"
    if not (release.kept or release.cut):
        return f"{new} and get a pseudonym."
    kept = f"{release.kept:,} persons keep their pseudonym"
    if not release.cut:
        return f"{kept}, and {new}."
    return f"{kept}, {new}, and {release.cut:,} get another, since too few share their history."
