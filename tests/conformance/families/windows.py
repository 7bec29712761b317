"""Contractions, windows and resampling."""
import numpy as np


def window(c, rank, kernel_extents=(1, 2, 3, 4, 5)):
    """Kernel, strides, dilations, pads and an extent that holds them."""
    kernel = [c.rng.choice(kernel_extents) for _ in range(rank)]
    strides = [c.rng.choice([1, 1, 2, 3]) for _ in range(rank)]
    dilations = [c.rng.choice([1, 1, 2, 3]) for _ in range(rank)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [c.rng.randint(0, min(2, r - 1)) for r in reach + reach]
    low = [max(1, r - pads[i] - pads[i + rank]) for i, r in enumerate(reach)]
    image = [extent + c.rng.choice([0, 1, 2, 3, 5, 8, 12][: 7 if rank < 3 else 4]) for extent in low]
    return kernel, strides, dilations, pads, image


def conv(c):
    rank = c.rng.choice([1, 2, 2, 2, 3])
    kernel, strides, dilations, pads, image = window(c, rank)
    group = c.rng.choice([1, 1, 1, 2, 3, 5])
    inner, outer = c.rng.choice([1, 2, 3, 5]), c.rng.choice([1, 2, 3, 7])
    if c.rng.random() < 0.2:
        inner = 1  # depthwise
    batch = c.rng.choice([1, 1, 2, 3])
    x = c.input(c.floats([batch, group * inner] + image))
    inputs = [x, c.either(c.floats([group * outer, inner] + kernel))]
    if c.rng.random() < 0.6:
        inputs.append(c.either(c.floats([group * outer])))
    attributes = {"strides": strides, "dilations": dilations, "group": group}
    if c.rng.random() < 0.2:
        attributes["auto_pad"] = c.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if attributes["auto_pad"] != "VALID":
            attributes["dilations"] = [1] * rank
    else:
        attributes["pads"] = pads
    y = c.node("Conv", inputs, **attributes)
    if c.rng.random() < 0.4:
        y = c.node(c.rng.choice(["Relu", "Sigmoid", "HardSwish"]), [y])
    return [y]


def conv_transpose(c):
    rank = c.rng.choice([1, 2, 2, 3])
    kernel, strides, dilations, _, _ = window(c, rank, (1, 2, 3, 4))
    group, inner, outer = c.rng.choice([1, 1, 2, 3]), c.rng.choice([1, 2, 3]), c.rng.choice([1, 2, 3])
    image = [c.rng.choice([1, 2, 3, 5, 7]) for _ in range(rank)]
    x = c.input(c.floats([c.rng.choice([1, 2]), group * inner] + image))
    inputs = [x, c.either(c.floats([group * inner, outer] + kernel))]
    if c.rng.random() < 0.5:
        inputs.append(c.constant(c.floats([group * outer])))
    output_padding = [c.rng.randint(0, max(s, d) - 1) if c.rng.random() < 0.3 and s > 1 else 0
                      for s, d in zip(strides, dilations)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [c.rng.randint(0, (r - 1) // 2) for r in reach + reach]
    return [c.node("ConvTranspose", inputs, strides=strides, dilations=dilations, group=group, pads=pads,
                   output_padding=[min(p, s - 1) for p, s in zip(output_padding, strides)])]


def pool(c):
    rank = c.rng.choice([1, 2, 2, 2, 3])
    kernel, strides, dilations, pads, image = window(c, rank, (1, 2, 3, 4))
    pads = [min(p, k - 1) for p, k in zip(pads, kernel + kernel)]
    op = c.rng.choice(["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool",
                       "GlobalLpPool"])
    x = c.input(c.floats([c.rng.choice([1, 2, 3]), c.rng.choice([1, 3, 5])] + image))
    if op == "GlobalLpPool":
        c.opset = min(c.opset, 21)  # ONNX Runtime has no later one
        return [c.node(op, [x], p=c.rng.choice([1, 2, 3, 4]))]
    if op.startswith("Global"):
        return [c.node(op, [x])]
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if op == "AveragePool":
        attributes["count_include_pad"] = c.rng.randint(0, 1)
    if op == "LpPool":
        attributes["p"] = c.rng.choice([1, 2, 3])
    if op != "LpPool" and c.rng.random() < 0.4:
        attributes["ceil_mode"] = 1
    if c.rng.random() < 0.5:
        attributes["dilations"] = dilations
    if op == "MaxPool" and c.rng.random() < 0.3:
        return c.node(op, [x], outputs=2, **attributes)
    return [c.node(op, [x], **attributes)]


def matmul(c):
    m, n, k = (c.rng.choice([1, 2, 3, 5, 8, 13, 17, 31]) for _ in range(3))
    batch = c.shape(0, 3, 60)
    left, right = batch + [m, k], c.broadcasts(batch) + [k, n]
    if c.rng.random() < 0.3:
        left, right = c.broadcasts(batch) + [m, k], batch + [k, n]
    chance = c.rng.random()
    if chance < 0.1:
        left = [k]
    elif chance < 0.2:
        right = [k]
    y = c.node("MatMul", [c.input(c.floats(left)), c.either(c.floats(right))])
    if c.rng.random() < 0.4:
        y = c.node("Gelu", [y])
    return [y]


def gemm(c):
    m, n, k = (c.rng.choice([1, 2, 3, 5, 8, 13, 17, 31]) for _ in range(3))
    ta, tb = c.rng.randint(0, 1), c.rng.randint(0, 1)
    inputs = [c.input(c.floats([k, m] if ta else [m, k])), c.either(c.floats([n, k] if tb else [k, n]))]
    if c.rng.random() < 0.7:
        inputs.append(c.either(c.floats(c.rng.choice([[n], [m, n], [1, n], [m, 1], [1], []]))))
    return [c.node("Gemm", inputs, transA=ta, transB=tb, alpha=c.rng.choice([1.0, 0.5, -2.0]),
                   beta=c.rng.choice([1.0, 0.25]))]


def einsum(c):
    equation = c.rng.choice(["ij,jk->ik", "bij,bjk->bik", "bij,bkj->bik", "ij->ji", "ij->j", "ij,ij->",
                             "bhid,bhjd->bhij",
                             "i,j->ij", "ijk,k->ij", "...ij,...jk->...ik", "bi,bi->b", "ij,jk,kl->il", "ii->i"])
    extents = {letter: c.rng.choice([1, 2, 3, 5, 7]) for letter in "ijklbhd"}
    dots = [2, 3]
    inputs = []
    for term in equation.split("->")[0].split(","):
        shape = []
        for letter in term.replace("...", "."):
            shape += dots if letter == "." else [extents[letter]]
        inputs.append(c.input(c.floats(shape)))
    return [c.node("Einsum", inputs, equation=equation)]


def resize(c):
    rank = c.rng.choice([1, 2, 2, 2, 3])
    mode = c.rng.choice(["nearest", "linear", "linear", "cubic"])
    if mode == "cubic":
        rank = 2
    image = [c.rng.choice([2, 3, 5, 7, 8]) for _ in range(rank)]
    x = c.input(c.floats([c.rng.choice([1, 2]), c.rng.choice([1, 3])] + image))
    attributes = {"mode": mode, "coordinate_transformation_mode": c.rng.choice(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"])}
    if mode == "nearest":
        attributes["nearest_mode"] = c.rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    elif rank == 2 and c.rng.random() < 0.4:
        attributes["antialias"] = 1
        attributes["coordinate_transformation_mode"] = c.rng.choice(["half_pixel", "align_corners"])
    if mode == "cubic":
        attributes["cubic_coeff_a"] = c.rng.choice([-0.75, -0.5])
    # With a fractional size ONNX Runtime and ONNX's reference differ on these two.
    transform = attributes["coordinate_transformation_mode"]
    whole = transform == "align_corners" or (mode == "nearest" and transform == "half_pixel_symmetric")
    if c.rng.random() < 0.5:
        factors = [1.0, 2.0, 3.0] if whole else [0.5, 0.6, 1.0, 1.5, 2.0, 3.0]
        scales = [1.0, 1.0] + [c.rng.choice(factors) for _ in image]
        if any(int(s * e) == 0 for s, e in zip(scales[2:], image)):
            scales = [1.0, 1.0] + [2.0] * rank
        return [c.node("Resize", [x, "", c.constant(np.array(scales, np.float32))], **attributes)]
    sizes = [c.rng.choice([1, 2, 4, 5, 9, 12]) for _ in image]
    if c.opset >= 18 and c.rng.random() < 0.6:
        attributes["axes"] = list(range(2, 2 + rank))
        attributes["keep_aspect_ratio_policy"] = c.rng.choice(
            ["stretch"] if whole else ["stretch", "not_larger", "not_smaller"])
        return [c.node("Resize", [x, "", "", c.constant(np.array(sizes, np.int64))], **attributes)]
    shape = [len(c.values[x]), c.values[x].shape[1]] + sizes
    return [c.node("Resize", [x, "", "", c.constant(np.array(shape, np.int64))], **attributes)]


def sampling(c):
    if c.rng.random() < 0.6:
        image, out = [c.rng.choice([2, 3, 5]), c.rng.choice([2, 4, 7])], [c.rng.choice([1, 3]), c.rng.choice([2, 5])]
        batch = c.rng.choice([1, 2])
        return [c.node("GridSample", [c.input(c.floats([batch, 2] + image)),
                                      c.input(c.floats([batch] + out + [2], -1.3, 1.3))],
                       mode=c.rng.choice(["linear", "nearest", "cubic"]), align_corners=c.rng.randint(0, 1),
                       padding_mode=c.rng.choice(["zeros", "border", "reflection"]))]
    rois = np.stack([np.array([x, y, x + w, y + h]) for x, y, w, h in c.np.uniform(0.5, 3, (3, 4))]).astype(np.float32)
    return [c.node("RoiAlign", [c.input(c.floats([2, 3, 8, 9])), c.input(rois), c.input(c.ints([3], 0, 2))],
                   output_height=c.rng.choice([1, 2, 3]), output_width=c.rng.choice([1, 2, 5]),
                   sampling_ratio=c.rng.choice([1, 2, 3]), spatial_scale=c.rng.choice([1.0, 0.5]),
                   mode=c.rng.choice(["avg", "max"]),
                   coordinate_transformation_mode=c.rng.choice(["half_pixel", "output_half_pixel"]))]
