"""Vowpal Wabbit's flags that are not supported here, with what to use instead."""

from __future__ import annotations

__all__ = ["ELSEWHERE", "SHORT"]

_BANDITS = "the library: onepass.experts has bandits (EXP3, UCB, Thompson), but none with contexts"
_CLIP = "nothing: --rule vw keeps to the labels seen so far, vw:clip=false does not"
_COSTS = "the library: onepass.reductions.CostSensitive"
_ERROR = "--on-error stop, the default; skip leaves such lines out"
_KERNEL = "--kernel rbf:gamma=… (or poly:degree=…), and --budget for how much is kept"
_NOTHING = "nothing: there is no counterpart"
_ONE = "nothing: one process learns, with a thread for each core that parses"
_PRODUCTS = "nothing: no matrix is factorised; -q ab makes the products themselves"
_SERVER = "nothing yet: there is no server"
_TREE = "the library: onepass.reductions.FilterTree"
_ZERO = "nothing: weights begin at 0, or where --start-from MODEL says"

# What to use instead → VW's flags.
_INSTEAD: dict[str, tuple[str, ...]] = {
    # how it learns
    "--rule vw": ("--coin", "--freegrad"),
    "--rule pa1": ("--pistol",),
    "--rule auto": ("--automl", "--boosting", "--epsilon_decay"),
    "--rule sgd with --passes": ("--bfgs", "--conjugate_gradient", "--svrg"),
    "--rule sgd:batch_size=…": ("--minibatch", "--batch_sz"),
    "--rule sgd:schedule=inv_scaling(t0=…)": ("--initial_t",),
    "a schedule: --rule sgd:schedule=geometric(gamma=…)": ("--decay_learning_rate",),
    "nothing: rates are exact": ("--exact_adaptive_norm",),
    "nothing: penalties spare the intercept": ("--no_bias_regularization",),
    _CLIP: ("--min_prediction", "--max_prediction"),
    "nothing: learning draws no random numbers": ("--random_seed",),
    _ZERO: ("--initial_weight", "--random_weights", "--normal_weights", "--truncated_normal_weights", "--constant"),
    _KERNEL: ("--ksvm", "--bandwidth", "--degree"),
    "nothing yet: learners here are linear, or have a kernel": ("--nn",),
    "the library: onepass.LinearClassifier(class_weight=…)": ("--classweight",),
    "the library: onepass.distributed": ("--bootstrap",),
    "the library: predict(X, return_std=True) of a rule with Gaussian weights": ("--confidence",),
    "the library: onepass.LaSVMClassifier chooses what it learns": ("--active", "--para_active"),
    # what it learns
    "--task multilabel": ("--multilabel_oaa", "--plt"),
    "--oaa K": ("--multiclass_oaa", "--oaa_subsample"),
    _COSTS: ("--csoaa", "--csoaa_ldf", "--wap", "--wap_ldf", "--cs_active"),
    _TREE: ("--ect", "--log_multi", "--recall_tree", "--memory_tree"),
    "the library: onepass.StructuredLearner": ("--search", "--search_task"),
    "nothing: no topic model; the library has onepass.BernoulliMixture and KMeans": ("--lda",),
    f"{_PRODUCTS} (for rankings: --task ranking)": ("--rank", "--new_mf", "--lrq", "--lrqfa"),
    _BANDITS: (
        "--cb", "--cb_adf", "--cb_explore", "--cb_explore_adf", "--cb_type", "--cbify", "--cats", "--ccb_explore_adf",
        "--slates", "--epsilon", "--bag", "--cover", "--softmax", "--squarecb", "--regcb", "--warm_cb",
    ),
    # what it reads
    "--format csv": ("--csv",),
    "--format tsv": ("--csv_separator",),
    "--no-header": ("--csv_no_file_header",),
    "--header, the default": ("--csv_header",),
    "--format jsonl (--json FILE writes the report)": ("--dsjson",),
    "--drop COLUMN": ("--ignore",),
    "--features COLUMN": ("--keep",),
    "-q ab": ("--quadratic",),
    "--interactions abc": ("--cubic", "--stage_poly"),
    "--text COLUMN and --ngram N": ("--skips", "--affix", "--spelling", "--dictionary"),
    "nothing: rows are taken as they come": ("--sort_features", "--permutations", "--leave_duplicate_interactions"),
    "nothing: labels of a table may be words (--label COLUMN)": ("--named_labels",),
    "nothing: names are hashed with MurmurHash3, and whole numbers are their own hash": ("--hash", "--hash_seed"),
    "nothing: a cache that does not fit its source is made anew": ("--kill_cache",),
    "nothing: .gz and .zst are recognised": ("--compressed",),
    "nothing: - is standard input, and only where it is given": ("--no_stdin",),
    "a shorter file: head FILE | onepass learn -": ("--examples",),
    _ERROR: ("--strict_parse",),
    # when it stops, and what is held out
    "nothing: all --passes are made; --holdout N shows each one's error": ("--early_terminate",),
    "nothing: nothing is held out unless --holdout N says so": ("--holdout_off",),
    "--holdout N": ("--holdout_after",),
    # what it writes
    "nothing: a saved model always resumes bit for bit": ("--save_resume", "--predict_only_model"),
    "--resume": ("--preserve_performance_counters",),
    "--checkpoint-every N": ("--save_per_pass",),
    "onepass inspect MODEL --all": ("--readable_model", "--audit_regressor", "--dump_json_weights_experimental"),
    "onepass predict MODEL SOURCE --scores": ("--raw_predictions", "--scores"),
    "onepass predict MODEL SOURCE --proba": ("--link", "--probabilities"),
    "nothing: classes are predicted as classes": ("--binary",),
    "--metrics A,B,…": ("--extra_metrics",),
    "--progress none": ("--no_progress",),
    "--quiet": ("--driver_output_off", "--driver_output", "--limit_output", "--log_level", "--log_output"),
    _SERVER: ("--daemon", "--port", "--port_file", "--pid_file", "--num_children", "--foreground", "--no_daemon"),
    _ONE: ("--span_server", "--total", "--node", "--unique_id", "--thread_pool_size", "--ring_size"),
    _NOTHING: ("--autolink", "--marginal", "--interact", "--feature_mask", "--feature_limit", "--ignore_linear"),
}  # fmt: skip
ELSEWHERE = {flag: instead for instead, flags in _INSTEAD.items() for flag in flags}
SHORT = {
    "-P": "--every N",
    "-k": "nothing: a cache that does not fit its source is made anew",
    "-s": "--progress none",
    "-h": "--help",
}
