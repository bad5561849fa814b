"""Trains a small convolutional network with TensorFlow and prints lines of JSON.

The network is that of the example which gVisor's performance guide trains
(TensorFlow-Examples, convolutional_network.py): 28x28 pictures, 32 filters of 5x5,
64 of 3x3, each followed by a maximum over 2x2, a layer of 1024, dropout of a
quarter, ten classes, Adam. The pictures are made here from a fixed seed instead of
being downloaded: ten patterns, one a class, under noise.

What it prints: {"event":"imported"...} when TensorFlow is loaded, {"event":"step"...}
after each step, {"event":"end"...} with what a check of pictures that it was not
trained with says. All times in seconds, of time.monotonic.
"""
import argparse
import json
import sys
import time

begin = time.monotonic()

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

imported = time.monotonic()

CLASSES, SIDE, SEED = 10, 28, 1
PATTERN, NOISE = 0.3, 0.5  # so that some tens of steps are needed to tell the classes


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def pictures(rng, patterns, count):
    labels = rng.integers(0, CLASSES, count)
    noise = rng.normal(0, 1, (count, SIDE, SIDE, 1))
    return (PATTERN * patterns[labels] + NOISE * noise).astype(np.float32), labels.astype(np.int32)


class Network:
    """Variables, and Adam's moments of each, as tf.raw_ops.ResourceApplyAdam wants them."""

    def __init__(self, rng, rate):
        def weights(*shape):
            fan_in, fan_out = np.prod(shape[:-1]), shape[-1]
            limit = np.sqrt(6 / (fan_in + fan_out))  # Glorot and Bengio 2010
            return rng.uniform(-limit, limit, shape)

        initial = [
            weights(5, 5, 1, 32), np.zeros(32),
            weights(3, 3, 32, 64), np.zeros(64),
            weights(5 * 5 * 64, 1024), np.zeros(1024),
            weights(1024, CLASSES), np.zeros(CLASSES),
        ]
        self.variables = [tf.Variable(x, dtype=tf.float32) for x in initial]
        self.m = [tf.Variable(tf.zeros_like(v)) for v in self.variables]
        self.v = [tf.Variable(tf.zeros_like(v)) for v in self.variables]
        self.rate = rate

    def logits(self, x, seed=None):
        w1, b1, w2, b2, w3, b3, w4, b4 = self.variables
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, w1, 1, "VALID") + b1), 2, 2, "VALID")
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, w2, 1, "VALID") + b2), 2, 2, "VALID")
        x = tf.nn.relu(tf.reshape(x, [-1, 5 * 5 * 64]) @ w3 + b3)
        if seed is not None:
            x = tf.nn.experimental.stateless_dropout(x, 0.25, seed)
        return x @ w4 + b4

    @tf.function(reduce_retracing=True)
    def step(self, x, y, n):
        with tf.GradientTape() as tape:
            seed = tf.stack([tf.constant(SEED), tf.cast(n, tf.int32)])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, self.logits(x, seed)))
        grads = tape.gradient(loss, self.variables)
        for var, m, v, g in zip(self.variables, self.m, self.v, grads):
            tf.raw_ops.ResourceApplyAdam(
                var=var.handle, m=m.handle, v=v.handle,
                beta1_power=tf.pow(0.9, n), beta2_power=tf.pow(0.999, n),
                lr=self.rate, beta1=0.9, beta2=0.999, epsilon=1e-8, grad=g)
        return loss

    @tf.function(reduce_retracing=True)
    def right(self, x, y):
        found = tf.argmax(self.logits(x), 1, output_type=tf.int32)
        return tf.reduce_mean(tf.cast(found == y, tf.float32))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, required=True)
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--threads", type=int, default=0, help="0: as many as TensorFlow chooses")
    a = p.parse_args()
    if a.threads:
        tf.config.threading.set_intra_op_parallelism_threads(a.threads)
        tf.config.threading.set_inter_op_parallelism_threads(a.threads)
    say("imported", seconds=imported - begin, tensorflow=tf.__version__, python=sys.version.split()[0],
        intra_op=tf.config.threading.get_intra_op_parallelism_threads())

    rng = np.random.default_rng(SEED)
    patterns = rng.normal(0, 1, (CLASSES, SIDE, SIDE, 1))
    net = Network(rng, rate=0.001)
    # As many pictures as the steps need, but no more than MNIST has.
    x, y = pictures(rng, patterns, min(a.steps * a.batch, 55000))
    check_x, check_y = pictures(rng, patterns, 256)
    for n in range(1, a.steps + 1):
        start = time.monotonic()
        at = np.arange((n - 1) * a.batch, n * a.batch) % len(x)
        loss = float(net.step(x[at], y[at], tf.constant(n, tf.float32)))
        end = time.monotonic()
        say("step", n=n, at=end - begin, seconds=end - start, loss=loss)
    say("end", steps=a.steps, batch=a.batch, right=float(net.right(check_x, check_y)), seconds=time.monotonic() - begin)


main()
