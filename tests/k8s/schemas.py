"""Manifests against the schemas of Kubernetes and the models of the operators.

Kubernetes' own kinds are validated strictly by kubernetes-validate. Of the others the models of
PyPI's packages say which fields there are, at every level; pods in them are validated as a Pod.
There is no package with the MPIJob of v2beta1: its pods are validated, and its own fields are
compared with those of the operator's release.

Standard input: a JSON object of manifests by name.
"""
import json
import sys

import kubernetes_validate
import yaml
from kubeflow import training
from kubeflow_trainer_api import models as trainer

VERSION = "1.32"
wrong = []
counts = {}


def say(name, text):
    wrong.append(text)
    print(f"{name}: {text}")


def validate(name, document):
    try:
        kubernetes_validate.validate(document, VERSION, strict=True)
        counts[document["kind"]] = counts.get(document["kind"], 0) + 1
    except kubernetes_validate.ValidationError as error:
        say(name, f"{document['kind']}: {error.message} at {list(error.path)}")


def pod(name, template):
    validate(name, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **template.get("metadata", {})},
                    "spec": template["spec"]})


def fields(name, where, value, allowed):
    extra = set(value) - set(allowed)
    if extra:
        say(name, f"{where} has no {sorted(extra)}")


def model_names(model):
    """The JSON names of a pydantic or an old OpenAPI model's fields."""
    if hasattr(model, "model_fields"):
        return [f.alias or n for n, f in model.model_fields.items()]
    return list(model.attribute_map.values())


def pytorchjob(name, document):
    spec = document["spec"]
    fields(name, "PyTorchJob.spec", spec, model_names(training.KubeflowOrgV1PyTorchJobSpec))
    for role, replica in spec["pytorchReplicaSpecs"].items():
        fields(name, role, replica, model_names(training.KubeflowOrgV1ReplicaSpec))
        pod(name, replica["template"])
    counts["PyTorchJob"] = counts.get("PyTorchJob", 0) + 1


def mpijob(name, document):
    spec = document["spec"]
    fields(name, "MPIJob.spec", spec,
           ["slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath",
            "launcherCreationPolicy", "mpiImplementation"])
    for role, replica in spec["mpiReplicaSpecs"].items():
        fields(name, role, replica, model_names(training.KubeflowOrgV1ReplicaSpec))
        pod(name, replica["template"])
    counts["MPIJob"] = counts.get("MPIJob", 0) + 1


def jobset_pods(name, spec):
    for job in spec["replicatedJobs"]:
        fields(name, "replicatedJob", job, model_names(trainer.JobsetV1alpha2ReplicatedJob))
        if "parallelism" in job["template"]["spec"]:
            validate(name, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"},
                            "spec": job["template"]["spec"]})
        pod(name, job["template"]["spec"]["template"])


def jobset(name, document):
    fields(name, "JobSet.spec", document["spec"], model_names(trainer.JobsetV1alpha2JobSetSpec))
    jobset_pods(name, document["spec"])
    counts["JobSet"] = counts.get("JobSet", 0) + 1


def trainjob(name, document):
    trainer.TrainerV1alpha1TrainJob.from_dict(document)
    spec = document["spec"]
    fields(name, "TrainJob.spec", spec, model_names(trainer.TrainerV1alpha1TrainJobSpec))
    fields(name, "trainer", spec["trainer"], model_names(trainer.TrainerV1alpha1Trainer))
    counts["TrainJob"] = counts.get("TrainJob", 0) + 1


def runtime(name, document):
    spec = document["spec"]
    fields(name, "TrainingRuntime.spec", spec, model_names(trainer.TrainerV1alpha1TrainingRuntimeSpec))
    fields(name, "mlPolicy", spec["mlPolicy"], model_names(trainer.TrainerV1alpha1MLPolicy))
    jobset_pods(name, spec["template"]["spec"])
    counts["TrainingRuntime"] = counts.get("TrainingRuntime", 0) + 1


OPERATORS = {"PyTorchJob": pytorchjob, "MPIJob": mpijob, "JobSet": jobset, "TrainJob": trainjob,
             "TrainingRuntime": runtime}
for asked, text in json.load(sys.stdin).items():
    for document in yaml.safe_load_all(text):
        OPERATORS.get(document["kind"], validate)(asked, document)
print("schemas: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
sys.exit(f"{len(wrong)} wrong: {wrong[:5]}" if wrong else 0)
