"""The options of Spark's file readers, by format: a misspelt one is ignored without a word."""

from ..errors import suggest
from .file_source import FileSource

_DATES = "dateFormat timeFormat timestampFormat timestampNTZFormat timeZone locale"
_PARSER = (
    "mode columnNameOfCorruptRecord encoding charset multiLine lineSep compression samplingRatio "
    f"singleVariantColumn enableDateTimeParsingFallback {_DATES}"
)
_OF_FORMAT = {
    "json": f"{_PARSER} allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers "
    "allowNumericLeadingZeros allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames "
    "dropFieldIfAllNull ignoreNullFields inferTimestamp maxNestingDepth maxNumLen maxStringLen "
    "prefersDecimal pretty primitivesAsString sortKeys useUnsafeRow "
    "writeNonAsciiCharacterAsCodePoint",
    "csv": f"{_PARSER} charToEscapeQuoteEscaping codec columnPruning comment delimiter emptyValue "
    "enforceSchema escape escapeQuotes extension header ignoreLeadingWhiteSpace "
    "ignoreTrailingWhiteSpace inferSchema inputBufferSize maxCharsPerColumn maxColumns nanValue "
    "negativeInf nullValue positiveInf preferDate quote quoteAll sep unescapedQuoteHandling",
    "text": "compression encoding lineSep wholetext",
    "xml": f"{_PARSER} arrayElementName attributePrefix declaration excludeAttribute "
    "ignoreNamespace ignoreSurroundingSpaces indent inferSchema maxCharsPerColumn nullValue "
    "prefersDecimal rootTag rowTag rowValidationXSDPath validateName valueTag wildcardColName "
    "preferDate codec samplingRatio useLegacyXMLParser",
    "parquet": "compression datetimeRebaseMode int96RebaseMode mergeSchema",
    "orc": "compression mergeSchema",
    "avro": "avroSchema avroSchemaUrl compression datetimeRebaseMode "
    "enableStableIdentifiersForUnionType ignoreExtension mode positionalFieldMatching recordName "
    "recordNamespace recursiveFieldMaxDepth stableIdentifierPrefixForUnionType",
}
_OF_STREAM = (
    "basePath cleanSource discardCachedInputRatio fileNameOnly ignoreCorruptFiles "
    "ignoreInvalidPartitionPaths ignoreMissingFiles latestFirst maxBytesPerTrigger maxCachedFiles "
    "maxFileAge maxFilesPerTrigger modifiedAfter modifiedBefore pathGlobFilter recursiveFileLookup "
    "sourceArchiveDir timeZone"
)

READER_OPTIONS = {
    format_: frozenset(f"{own} {_OF_STREAM}".split()) for format_, own in _OF_FORMAT.items()
}
"""Format -> what Spark 4.2's reader and its stream of files take; a test holds the list to Spark's
own. Case does not count, and names with a dot are settings of Hadoop's file systems and readers."""

_SYNONYMS = {"separator": "sep", "seperator": "sep", "delim": "sep", "quotechar": "quote"} | {
    "null": "nullValue",
    "na": "nullValue",
    "nullvalues": "nullValue",
    "escapechar": "escape",
    "timestamp_format": "timestampFormat",
}
"""What other readers call an option, in lower case."""


def describe_options(source: FileSource) -> dict[str, str]:
    """Options that Spark's reader of the source does not have -> what to write instead.

    Empty where nothing is near: another version of Spark may have the option.
    """
    known = READER_OPTIONS[source.format]
    lower = {name.lower() for name in known}
    unknown = [n for n in source.options if "." not in n and n.lower() not in lower]
    return {name: _advise(name, source.format) for name in unknown}


def _advise(name: str, format_: str) -> str:
    known = READER_OPTIONS[format_]
    if _SYNONYMS.get(name.lower()) in known:
        return f"Did you mean {_SYNONYMS[name.lower()]!r}? "
    others = [
        other for other, names in READER_OPTIONS.items() if name.lower() in map(str.lower, names)
    ]
    if others:
        return f"It is an option of {' and '.join(others)}; leave it out"
    return suggest(name, known)
