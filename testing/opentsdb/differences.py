"""The differences that are on purpose, with their reasons. Any other difference is a fault.

VALUES are those of answers to /api/query. The comparison finds by itself where they apply, point by point, and
answers.py says how. REQUESTS are those of the fixed requests in fixed.py, by the name that a request has there.
"""

VALUES = {
    "integers": "values are floats: a mean, a deviation, a percentile and an interpolated value of integers is not "
    "rounded. OpenTSDB is asked again for the metric with the same values as floats",
    "whole floats": "a float without a fraction is shown as an integer where nothing is computed",
    "first rate": "a rate begins with the second point of a series; OpenTSDB gives the first point a rate since "
    "1970, which takes part in aggregates over several series until the second",
    "one second": "several points of a second become one, by the aggregator; OpenTSDB repeats the key in its "
    "JSON",
    "estimates": "ep…r3 and ep…r7 are what their names say; OpenTSDB computes pNN for floats, and so for all that "
    "is downsampled",
    "order": "series are in the order of their tags, OpenTSDB's in the order of UIDs; a series without a tag comes "
    "first",
    "calendar edges": "the first and the last bucket of a calendar are there and complete; OpenTSDB reads up to a "
    "multiple of the interval since 1970, and a fill policy leaves out the last bucket",
    "changed clock": "hours of a calendar are counted from each midnight; OpenTSDB counts them from the first point, "
    "so that they move when the clock changes",
    "fewer groups": "a group without a point in the range is left out; OpenTSDB answers it without points",
    "lookup": "a series is listed once; OpenTSDB lists it for each of its hours, and at times finds nothing in its "
    "data table",
    "unknown names": "a tag or value that nothing has selects nothing; OpenTSDB answers 400",
}

# Those of answers to /api/query/exp; expressions.py finds where they apply.
EXPRESSIONS = {
    "results": "a result may be an integer, a condition, or a number of the expression; OpenTSDB refuses it",
    "nested expressions": "an expression that another one uses has its values at its times; OpenTSDB fails where the "
    "times differ, or where a value is missing",
    "times of one row": "OpenTSDB has 0 for the last time of one row, and 2^63 - 1 for the first of none",
    "tags of a union": "OpenTSDB has no tags for a series that its first variable lacks",
    "metrics of a union": "OpenTSDB names the metrics of the first series for all",
}

# What is still compared: `status` the status only, `refused` only that both refuse, `nothing` nothing.
REQUESTS = {
    # Queries.
    "tag value that nothing has": ("nothing", VALUES["unknown names"]),
    "tag key that nothing has": ("nothing", VALUES["unknown names"]),
    "part of m that is not known": ("nothing", "OpenTSDB ignores a word it does not know, such as a wrong interval"),
    "third braces": ("nothing", "OpenTSDB ignores what follows the second braces"),
    "numbers with fractions": ("nothing", "counterMax and resetValue of a URL may have a fraction, as in JSON"),
    "rate options that are not known": ("nothing", "OpenTSDB ignores a word it does not know"),
    "filter of a URL": ("refused", "what is wrong with a request is 400, not 500"),
    "filter of JSON": ("status", "the message names the fault; OpenTSDB's has Java's class names in the details"),
    "not_key": ("nothing", "OpenTSDB 2.4 describes the filter and has not enabled it"),
    "empty metric of m": ("refused", "what is wrong with a request is 400, not 500"),
    "no parts at all": ("refused", "OpenTSDB answers 500: a null pointer"),
    "zone that nobody knows": ("nothing", "OpenTSDB takes it for UTC"),
    "thirteenth month": ("nothing", "OpenTSDB takes 2013/13/01 for 2014/01/01"),
    "short date": ("nothing", "2013/1/1 is a date"),
    "JSON that is none": ("status", "details are not Java's"),
    "delete of POST": ("nothing", "OpenTSDB ignores what it may not do; this is an error"),
    "flag that is false": ("nothing", "OpenTSDB takes arrays=false for arrays"),
    "tsuid": ("nothing", "queries by TSUID are not supported"),
    "jsonp": ("nothing", "scripts of other sites cannot read answers"),
    "wildcard within": ("nothing", "a form without a star at its end matches the end; OpenTSDB takes a*c for a*c*"),
    "filters of one tag": ("nothing", "all filters of a tag must be met; OpenTSDB takes either of two values"),
    "fourteen digits": ("refused", "a number of more than 13 digits is no time"),
    # Points.
    "time that is no number": ("status", "one wrong point leaves the others; OpenTSDB refuses the whole body"),
    "nine tags": ("nothing", "a series may have more than eight tags"),
    "time after 2262": ("nothing", "the last time is in 2262; OpenTSDB's in 2286, its words differ"),
    "infinite value": ("status", "words"),
    # Other paths.
    "last without resolve": ("nothing", "metric and tags are always there"),
    "last without back_scan": ("nothing", "OpenTSDB needs its meta table"),
    "last of some tags": ("nothing", "all series that have these tags; OpenTSDB needs all tags"),
    "last of an open brace": ("refused", "what is wrong with a request is 400, not 500"),
    "lookup of values": ("nothing", "the values are filters"),
    "lookup of names that nothing has": ("nothing", VALUES["unknown names"]),
    "lookup of few rows": ("nothing", "OpenTSDB finds nothing in its data table at times"),
    "zone of a URL": ("nothing", "tz counts for the times and calendars of /api/query; OpenTSDB ignores it there"),
    "lookup's limit": ("nothing", "totalResults counts all series; OpenTSDB counts those it shows"),
    "serializers": ("nothing", "OpenTSDB 2.4.1 has lost this path"),
    "not implemented": ("nothing", "trees, meta data, rollups and gexp are not supported"),
    "expression that is wrong": ("refused", "what is wrong is 400, not 500; faults of formulas have words of their own"),
    "upper case": ("nothing", "an id may have upper case"),
    "timeOffset": ("nothing", "it is refused; OpenTSDB ignores it"),
    "functions": ("refused", "there are no functions and texts"),
    "annotation without content": ("refused", "words of a JSON parser"),
    "short tsuid": ("nothing", "the number of a series is not checked"),
    "time of an annotation": ("nothing", "the last time is in 2262"),
    "assign": ("nothing", "names have numbers without being assigned any"),
    "letter case of paths": ("nothing", "paths are lower case"),
    "version": ("nothing", "each has its own"),
}

TELNET = {
    "put  ": "several spaces are one; OpenTSDB takes what is between them for a name",
    "put\t": "a tab is a space",
    "nine tags": "a series may have more than eight tags",
    "time after 2262": "words",
    "version": "each has its own",
    "help": "each has its own commands",
    "stats": "each has its own",
    "auth": "OpenTSDB has it as a plugin",
    "rollup": "there are no rollups",
    "histogram": "there are no histograms",
}
