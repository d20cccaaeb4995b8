"""The rules that the cells try: each of `rules.RULES`, with every loss and every schedule at least once.

Each has the tasks that it is defined for and the readouts that it admits, written out here and not read from the code.
"""

from __future__ import annotations

import dataclasses

TASKS = {
    "b": "binary",
    "m": "multiclass",
    "r": "regression",
    "l": "multilabel",
    "o": "oneclass",
    "k": "ranking",
    "s": "structured",
}
READOUTS = {
    "all": ("last", "average", "post", "pocket", "voted"),
    "no vote": ("last", "average", "post", "pocket"),
    "mean": ("last", "average", "post"),
    "link": ("last", "pocket"),
    "last": ("last",),
    "pocket": ("average", "post", "pocket", "voted"),
}


@dataclasses.dataclass(frozen=True)
class Entry:
    text: str
    tasks: tuple[str, ...]
    readouts: tuple[str, ...] = ("last",)
    libm: bool = False  # does it take exp, log or pow?
    kernel: bool = False  # has it a kernel form?


def _entry(text: str, tasks: str, readouts: str, *flags: str) -> Entry:
    return Entry(text, tuple(TASKS[t] for t in tasks), READOUTS[readouts], "libm" in flags, "kernel" in flags)


RULES: dict[str, Entry] = {
    entry.text: entry
    for entry in (
        _entry("perceptron", "bmlks", "all", "kernel"),
        _entry("perceptron:rho=0.5,beta=0.2,strict=true", "bmlks", "all", "kernel"),
        _entry("pocket", "bmlks", "pocket"),
        _entry("adaline:rho=0.01", "bmr", "no vote", "kernel"),
        _entry("nlms:mu=0.5", "bmr", "no vote", "kernel"),
        _entry("pa", "bmrloks", "all", "kernel"),
        _entry("pa1:C=0.1", "bmrloks", "all", "kernel"),
        _entry("pa2:lam=0.3,epsilon=0", "bmrloks", "all", "kernel"),
        _entry("mira", "bmlk", "no vote", "kernel"),
        _entry("romma", "bmlks", "no vote", "kernel"),
        _entry("aromma", "bmlks", "no vote", "kernel"),
        _entry("alma", "bmlk", "no vote", "kernel"),
        _entry("alma:p=4", "bmlk", "link", "libm"),
        _entry("shifting", "bmlk", "no vote", "kernel"),
        _entry("sgd:l2=0.5", "bmks", "no vote", "kernel"),
        _entry("sgd:loss=logistic,schedule=inv_scaling(p=0.3,t0=2)", "bmks", "no vote", "libm", "kernel"),
        _entry("sgd:loss=squared_hinge,schedule=constant,eta=0.02,l2=0.1", "bmks", "no vote", "kernel"),
        _entry("sgd:loss=ramp,schedule=geometric(eta=0.5,gamma=0.95,eta_min=0.05)", "bmks", "no vote", "libm"),
        _entry("sgd:loss=perceptron(beta=0.5),schedule=inv_t,eta=1", "bmks", "no vote"),
        _entry("sgd:loss=squared,schedule=inv_sqrt,eta=0.02,l2=0.3", "bmr", "no vote", "kernel"),
        _entry("sgd:loss=absolute,schedule=step_decay(eta=0.2,every=7)", "r", "no vote", "libm"),
        _entry("sgd:loss=eps_insensitive(epsilon=0.2),l2=0.1,clock=updates", "r", "no vote"),
        _entry("sgd:loss=squared_eps_insensitive,schedule=constant,eta=0.02", "r", "no vote"),
        _entry("sgd:loss=quantile(tau=0.8)", "r", "no vote"),
        _entry("sgd:loss=huber(delta=0.7),l2=0.2", "r", "no vote", "kernel"),
        _entry("sgd:loss=tukey,schedule=optimal(alpha=0.1)", "r", "no vote"),
        _entry("sgd:loss=logistic,batch_size=4,clock=updates", "bm", "mean", "libm"),
        _entry("sgd:loss=squared,schedule=constant,eta=0.005,batch_size=5,reduction=sum", "bmr", "mean"),
        _entry("fobos:lam1=0.05", "bmks", "last"),
        _entry("truncated:gravity=0.1,K=3,threshold=0.5", "bmks", "last"),
        _entry("pegasos:lam=0.05,project=true", "bmlks", "no vote", "kernel"),
        _entry("adagrad:loss=squared,eta=0.3,delta=0.01,eps_inside=true", "bmr", "mean"),
        _entry("adadelta:loss=squared_hinge,eps=0.01", "bmks", "mean", "libm"),
        _entry("rmsprop:loss=absolute,eta=0.1,absent=exact", "r", "mean", "libm"),
        _entry("rmsprop:loss=hinge,eta=0.1", "bmks", "mean", "libm"),
        _entry("adam:loss=squared,eta=0.1,absent=lazy", "bmr", "mean", "libm"),
        _entry("ftrl:loss=squared,beta=0,lam1=0.2", "bmr", "mean"),
        _entry("ftrl:alpha=0.5,lam1=0.3,lam2=0.1", "bmks", "mean", "libm"),
        _entry("vw", "bml", "mean", "libm"),
        _entry("vw:loss=squared", "bmr", "mean", "libm"),
        _entry("norma:lam=0.05,nu=0.3", "bm", "no vote", "kernel"),
        _entry("parzen", "bm", "all", "kernel"),
        _entry("pamir:C=0.1", "k", "all"),
        _entry("mroc:beta=2", "k", "no vote", "libm"),
        _entry("rls:forgetting=0.95,max_gamma=5,forecast=vaw", "bmr", "no vote"),
        _entry("rls:forgetting=0.95,max_gamma=5,form=chol", "bmr", "no vote"),
        _entry("kalman:q=0.05,r=2", "r", "no vote"),
        _entry("arow:lam=0.5", "bmrlks", "no vote"),
        _entry("arow:covariance=full,sigma0=2", "bmrlks", "no vote"),
        _entry("cw", "bmlk", "no vote"),
        _entry("scw1:C=0.3,diag=project", "bmlk", "no vote"),
        _entry("scw2:C=0.3", "bmlk", "no vote"),
        _entry("nherd:C=0.1", "bmlks", "no vote"),
        _entry("ons", "bmlks", "no vote", "libm"),
        _entry("ons:loss=huber,covariance=diagonal", "r", "no vote"),
    )
}
