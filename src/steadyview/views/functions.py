"""Spark's built-in functions, sorted by what they mean for maintenance.

A view must be a function of its relations alone: the same rows give the same view, in any session,
at any time, in any partitioning. So only functions of `SCALAR` (deterministic, one row in, one
value out, as registered by Spark 4.2) may appear, and the aggregates of `AGGREGATES`; every other
name is refused with the reason `refusal_of` gives. Names are lower case.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


AGGREGATES = {"count": "COUNT", "sum": "SUM", "avg": "AVG", "mean": "AVG"}
"""The aggregates that are kept as sums, by every name Spark has for them."""

PLANNED = {**AGGREGATES, "min": "MIN", "max": "MAX"}
"""All aggregates that are maintained."""

SESSION_WORDS = _names("""
    current_catalog current_database current_date current_schema current_time current_timestamp
    current_timezone current_user localtimestamp session_user user
""")
"""Functions of the session or the clock that need no parentheses."""

_CLOCK = _names("""
    curdate current_date current_time current_timestamp current_timezone localtimestamp now
""")

_SESSION = SESSION_WORDS | _names("curdate current_path now version")

_DICE = _names("""
    aes_encrypt assert_true monotonically_increasing_id raise_error rand randn random randstr
    shuffle spark_partition_id uniform uuid
""")

_OUTWARD = _names("""
    from_xml input_file_block_length input_file_block_start input_file_name java_method reflect
    schema_of_xml try_reflect xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
    xpath_number xpath_short xpath_string
""")
"""What reaches beyond the rows: Java methods, names of files, XML, whose text or options may name
files and addresses that are then opened."""

_GENERATORS = _names("""
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack
    variant_explode variant_explode_outer
""")

_WINDOWS = _names("""
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
""")

_TIME_WINDOWS = _names("session_window window window_time")

_OTHER_AGGREGATES = _names("""
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count_if count_min_sketch
    covar_pop covar_samp every first first_value histogram_numeric hll_sketch_agg
    hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value
    listagg max_by measure median min_by mode percentile percentile_approx percentile_cont
    percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp
    string_agg theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp
    variance vector_avg vector_sum
""")

SCALAR = _names("""
    try_cast timestampadd timestampdiff
    abs acos acosh add_months aes_decrypt aggregate and approx_top_k_estimate array
    array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove
    array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh
    atan atan2 atanh base64 between bigint bin binary bit_count bit_get bit_length
    bitmap_bit_position bitmap_bucket_number bitmap_count boolean bround btrim cardinality
    cast cbrt ceil ceiling char char_length character_length chr coalesce collate collation
    concat concat_ws contains conv convert_timezone cos cosh cot crc32 csc date date_add
    date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff
    datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees div double e
    element_at elt encode endswith equal_null exists exp expm1 extract factorial filter
    find_in_set flatten float floor forall format_number format_string from_csv from_json
    from_unixtime from_utc_timestamp get get_json_object getbit greatest hash hex
    hll_sketch_estimate hll_union hour hypot if ifnull ilike in initcap instr int
    is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull json_array_length
    json_object_keys kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
    kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
    kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
    kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double
    kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
    kll_sketch_to_string_float last_day lcase least left len length levenshtein like ln locate
    log log10 log1p log2 lower lpad ltrim luhn_check make_date make_dt_interval make_interval
    make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8
    make_ym_interval map map_concat map_contains_key map_entries map_filter map_from_arrays
    map_from_entries map_keys map_values map_zip_with mask md5 minute mod month monthname
    months_between named_struct nanvl negative next_day not nullif nullifzero nvl nvl2
    octet_length or overlay parse_json parse_url pi pmod position positive pow power printf
    quarter quote radians reduce regexp regexp_count regexp_extract regexp_extract_all
    regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rint
    rlike round rpad rtrim schema_of_csv schema_of_json schema_of_variant sec
    second sentences sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign
    signum sin sinh size slice smallint sort_array soundex space split split_part sqrt
    st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid startswith str_to_map string
    struct substr substring substring_index tan tanh theta_difference theta_intersection
    theta_sketch_estimate theta_union time time_bucket time_diff time_from_micros
    time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds
    time_trunc timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint to_binary
    to_char to_csv to_date to_json to_number to_time to_timestamp to_timestamp_ltz
    to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar to_variant_object to_xml
    transform transform_keys transform_values translate trim trunc try_add try_aes_decrypt
    try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url try_subtract
    try_to_binary try_to_date try_to_number try_to_time try_to_timestamp try_url_decode
    try_validate_utf8 try_variant_get tuple_difference_double tuple_difference_integer
    tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_double
    tuple_intersection_integer tuple_intersection_theta_double
    tuple_intersection_theta_integer tuple_sketch_estimate_double
    tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer
    tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_double
    tuple_union_integer tuple_union_theta_double tuple_union_theta_integer typeof ucase
    unbase64 unhex unix_date unix_micros unix_millis unix_seconds unix_timestamp upper
    url_decode url_encode validate_utf8 variant_get vector_cosine_similarity
    vector_inner_product vector_l2_distance vector_norm vector_normalize weekday weekofyear
    when width_bucket xxhash64 year zeroifnull zip_with
""")

_LISTS = _names("array_agg collect_list collect_set histogram_numeric approx_top_k")
_NO_LISTS = (
    "select the argument and the columns of GROUP BY as they are, and make the list when you read"
    " the view: a view's columns cannot be lists"
)

INSTEAD = {
    **dict.fromkeys(_LISTS, _NO_LISTS),
    "count_if": "write COUNT(CASE WHEN condition THEN 1 END)",
    "try_sum": "write SUM",
    "try_avg": "write AVG",
    "grouping": "leave it out: without GROUPING SETS, CUBE or ROLLUP it is 0 in every row",
    "grouping_id": "leave it out: without GROUPING SETS, CUBE or ROLLUP it is 0 in every row",
}
"""What to write for single functions that are refused."""
_OPERATORS = _names("! % & * + - / < << <= <=> = == > >= >> >>> ^ | ~")

QUERY = (
    SCALAR
    | frozenset(AGGREGATES)
    | _names("grouping grouping_id max min range")
    | _OTHER_AGGREGATES
    | _WINDOWS
    | _TIME_WINDOWS
    | _GENERATORS
    | _CLOCK
    | _DICE
    | _OPERATORS
)
"""What a query may call: everything that is made of the rows, the clock and dice alone."""

_REFUSED = (
    (_OTHER_AGGREGATES, "OTHER_AGGREGATE"),
    (_names("grouping grouping_id"), "GROUPING_SETS"),
    (_WINDOWS, "WINDOW"),
    (_GENERATORS, "GENERATOR"),
    (_TIME_WINDOWS, "TIME_WINDOW"),
    (_DICE, "NON_DETERMINISTIC"),
    (_OUTWARD, "OUTWARD"),
    (_SESSION, "SESSION_FUNCTION"),
)


def refusal_of(name: str, *, arguments: bool) -> str | None:
    """The reason code that refuses a call of this function, None if it may be used.

    >>> refusal_of("upper", arguments=True), refusal_of("unix_timestamp", arguments=False)
    (None, 'SESSION_FUNCTION')
    >>> refusal_of("my_udf", arguments=True)
    'UNKNOWN_FUNCTION'
    """
    if name == "unix_timestamp" and not arguments:
        return "SESSION_FUNCTION"
    if name in SCALAR or name in PLANNED:
        return None
    for names, code in _REFUSED:
        if name in names:
            return code
    return "UNKNOWN_FUNCTION"
