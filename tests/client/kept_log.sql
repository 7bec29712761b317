PRAGMA application_id = 1213156933;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE workloads (
  hash BLOB PRIMARY KEY CHECK (length(hash) = 16),
  text TEXT NOT NULL,
  flop INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16)
) STRICT;
INSERT INTO workloads VALUES(X'72f30bf9822c0e2b528c9c0472f6cb4c',replace('workload 1\nx0: f32[1,16,14,14] input range(-1,1)\nx1: f32[32,16,3,3] constant\ns0: f32[1,16,16,16] = select(i1 - 1 >= 0 & i1 - 1 < 14 & (i2 - 1 >= 0 & i2 - 1 < 14), x0[0, i3, i1 - 1, i2 - 1], 0.0)\ns1: f32[1,14,14,32] = sum[r0:3,r1:3,r2:16] (s0[0, i1 + r0, i2 + r1, r2] * x1[i3, r2, r0, r1])\ns2: f32[1,14,14,32] output = max(s1[i0, i1, i2, i3], 0.0)\n','\n',char(10)),1812608,56064,X'1fe5885390423b7749de0021ecf8e4eb');
INSERT INTO workloads VALUES(X'6e412bc3fbfcbfd9f44514a6ae95b607',replace('workload 1\nx0: f32[1,14,14,32] input range(0,1)\nx1: f32[32,1,3,3] constant\ns0: f32[1,16,16,32] = select(i1 - 1 >= 0 & i1 - 1 < 14 & (i2 - 1 >= 0 & i2 - 1 < 14), x0[0, i1 - 1, i2 - 1, i3], 0.0)\ns1: f32[1,14,14,32] = sum[r0:3,r1:3] (s0[0, i1 + r0, i2 + r1, i3] * x1[i3, 0, r0, r1])\ns2: f32[32] = max[r0:196] (s1[0, r0 // 14, r0 % 14, i0])\ns3: f32[1,14,14,32] = exp(s1[i0, i1, i2, i3] - s2[i3])\ns4: f32[32] = sum[r0:196] (s3[0, r0 // 14, r0 % 14, i0])\ns5: f32[32,196] output over [i0:1,i1:14,i2:14,i3:32] at [i3, i1 * 14 + i2] = s3[i0, i1, i2, i3] * (1.0 / s4[i3])\n','\n',char(10)),150528,51328,X'b3338b2bfa016aaa918d8dc7153245f0');
INSERT INTO workloads VALUES(X'37bf93cdcb9ef5b73734d46f17e809d6',replace('workload 1\nx0: f32[32,196] input range(0,1)\ns0: f32[32,196] output scan 0 = select(i0 >= 1, s0[i0 - 1, i1], 0.0) + x0[i0, i1]\n','\n',char(10)),6272,50176,X'f512382decd3e648bedf10843354d33f');
INSERT INTO workloads VALUES(X'c5b75640a88c1352cd78e43d047dc08c',replace('workload 1\nx0: f32[32,196] input range(-1,1)\nx1: f32[32,48] constant\nx2: f32[48] constant\ns0: f32[196,48] = sum[r0:32] (x0[r0, i0] * x1[r0, i1])\ns1: f32[196,48] output = s0[i0, i1] + x2[i1]\n','\n',char(10)),611520,69056,X'93338357f637bf34497b8c2785acf5af');
CREATE TABLE traces (
  hash BLOB PRIMARY KEY CHECK (length(hash) = 16),
  text TEXT NOT NULL
) STRICT;
INSERT INTO traces VALUES(X'f295a85b9827f67510656ac567de18fd',replace('split(s0.i1, [25,8], mask)\nreorder(s0.i1.0, s0.i0, s0.i1.1, s0.i1.2)\nvectorize(s0.i1.2)\n','\n',char(10)));
INSERT INTO traces VALUES(X'55c5e545f79e78b27ab1597104d86b31',replace('inline(s0)\ns6 = pack(s1, x1, [i1,i0/16,i2,i3,i0%16])\nsplit(s1.i3, [2,8])\nsplit(s1.i2, 2, two_sizes)\npartition(s1.i2.0, [1,-1])\nreorder(s1.i0, s1.i1, s1.i3.0, s1.i2.0, s1.r0, s1.r1, s1.i2.1, s1.i3.1, s1.i3.2)\nparallel(s1.i1, 1)\ns7 = cache_write(s1, register, at=s1.i2.0)\nunroll(s1.i2.1)\nunroll(s1.i3.1)\nvectorize(s1.i3.2)\nunroll(s1.r1)\nunroll(s1.r0)\nsplit(s2.i0, [4,8])\nreorder(s2.i0.0, s2.r0, s2.i0.1, s2.i0.2)\ns8 = cache_write(s2, register, at=s2.i0.0)\nunroll(s2.i0.1)\nvectorize(s2.i0.2)\nsplit(s3.i3, 8)\nvectorize(s3.i3.1)\nparallel(s3.i1, 1)\nsplit(s4.i0, [4,8])\nreorder(s4.i0.0, s4.r0, s4.i0.1, s4.i0.2)\ns9 = cache_write(s4, register, at=s4.i0.0)\nunroll(s4.i0.1)\nvectorize(s4.i0.2)\nsplit(s5.i2, 8, mask)\nsplit(s5.i3, 8)\nunroll(s5.i3.1)\nreorder(s5.i0, s5.i1, s5.i3.0, s5.i2.0, s5.i3.1, s5.i2.1)\nvectorize(s5.i2.1)\nparallel(s5.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'09c5831a69eb657a56d4a04fbf5d1969',replace('inline(s0)\ns6 = pack(s1, x1, [i1,i0/16,i2,i3,i0%16])\nsplit(s1.i3, [2,8])\nsplit(s1.i2, 2, two_sizes)\npartition(s1.i2.0, [1,-1])\nreorder(s1.i0, s1.i1, s1.i3.0, s1.i2.0, s1.r0, s1.r1, s1.i2.1, s1.i3.1, s1.i3.2)\nparallel(s1.i1, 1)\ns7 = cache_write(s1, register, at=s1.i2.0)\nunroll(s1.i2.1)\nunroll(s1.i3.1)\nvectorize(s1.i3.2)\nunroll(s1.r1)\nunroll(s1.r0)\nsplit(s2.i0, [4,8])\nreorder(s2.i0.0, s2.r0, s2.i0.1, s2.i0.2)\ns8 = cache_write(s2, register, at=s2.i0.0)\nunroll(s2.i0.1)\nvectorize(s2.i0.2)\nsplit(s3.i3, [2,8])\nunroll(s3.i3.1)\nvectorize(s3.i3.2)\nparallel(s3.i1, 1)\nsplit(s4.i0, [4,8])\nreorder(s4.i0.0, s4.r0, s4.i0.1, s4.i0.2)\ns9 = cache_write(s4, register, at=s4.i0.0)\nunroll(s4.i0.1)\nvectorize(s4.i0.2)\nsplit(s5.i2, 8, mask)\nsplit(s5.i3, 8)\nunroll(s5.i3.1)\nreorder(s5.i0, s5.i1, s5.i3.0, s5.i2.0, s5.i3.1, s5.i2.1)\nvectorize(s5.i2.1)\nparallel(s5.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'edb2a7c1e0369b34f6e888f974084ca7',replace('inline(s0)\ns6 = pack(s1, x1, [i1,i0/16,i2,i3,i0%16])\nsplit(s1.i3, [2,8])\nsplit(s1.i2, 2, two_sizes)\npartition(s1.i2.0, [1,-1])\nreorder(s1.i0, s1.i1, s1.i3.0, s1.i2.0, s1.r0, s1.r1, s1.i2.1, s1.i3.1, s1.i3.2)\nparallel(s1.i1, 1)\ns7 = cache_write(s1, register, at=s1.i2.0)\nunroll(s1.i2.1)\nunroll(s1.i3.1)\nvectorize(s1.i3.2)\nunroll(s1.r1)\nunroll(s1.r0)\nsplit(s2.i0, [4,8])\nreorder(s2.i0.0, s2.r0, s2.i0.1, s2.i0.2)\ns8 = cache_write(s2, register, at=s2.i0.0)\nunroll(s2.i0.1)\nvectorize(s2.i0.2)\nsplit(s3.i3, [4,8])\nunroll(s3.i3.1)\nvectorize(s3.i3.2)\nparallel(s3.i1, 1)\nsplit(s4.i0, [4,8])\nreorder(s4.i0.0, s4.r0, s4.i0.1, s4.i0.2)\ns9 = cache_write(s4, register, at=s4.i0.0)\nunroll(s4.i0.1)\nvectorize(s4.i0.2)\nsplit(s5.i2, 8, mask)\nsplit(s5.i3, 8)\nunroll(s5.i3.1)\nreorder(s5.i0, s5.i1, s5.i3.0, s5.i2.0, s5.i3.1, s5.i2.1)\nvectorize(s5.i2.1)\nparallel(s5.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'82002e95155c94567783624e8e6a32c4',replace('split(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\ns3 = pack(s1, x1, [i0/8,i2,i3,i1,i0%8])\nsplit(s2.i3, [1,8])\nsplit(s2.i2, 14, two_sizes)\nreorder(s2.i0, s2.i1, s2.i3.0, s2.i2.0, s2.i2.1, s2.i3.1, s2.i3.2)\nparallel(s2.i1, 1)\nunroll(s2.i2.1)\nunroll(s2.i3.1)\nvectorize(s2.i3.2)\ncompute_at(s1, s2.i2.0, register)\nsplit(s1.i3, 8)\nreorder(s1.r0, s1.r1, s1.r2, s1.i0, s1.i1, s1.i2, s1.i3.0, s1.i3.1)\nunroll(s1.i2)\nunroll(s1.i3.0)\nvectorize(s1.i3.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'975d1b4c1aa2b70a8ad116a1f752523a',replace('s3 = algorithm(s1, winograd, 2)\ns9 = pack(s7, s6, [i0,i1,i3/8,i2,i3%8])\nsplit(s2.i1, 14, mask)\nsplit(s2.i1.1, 2, mask)\nsplit(s2.i2, 2, mask)\nsplit(s2.i3, [1,8], mask)\nreorder(s2.i1.0, s2.i3.0, s2.i1.1.0, s2.i2.0, s2.i3.1, s2.i1.1.1, s2.i2.1, s2.i3.2)\nunroll(s2.i1.1.1)\nunroll(s2.i2.1)\nvectorize(s2.i3.2)\nparallel(s2.i1.0, 1)\ncompute_at(s4, s2.i1.0, memory)\ncompute_at(s7, s2.i3.0, memory)\ncompute_at(s8, s2.i3.1, register)\nreorder(s8.i3, s8.i4, s8.r0, s8.i5)\nunroll(s8.i3)\nunroll(s8.i4)\nunroll(s8.r0)\nvectorize(s8.i5)\ncompute_at(s1, s2.i3.1, register)\nreorder(s1.i1, s1.i2, s1.r0, s1.i3)\nunroll(s1.i1)\nunroll(s1.i2)\nunroll(s1.r0)\nvectorize(s1.i3)\nalign(s4, 1, 16)\nsplit(s4.i5, 8, mask)\nreorder(s4.i2, s4.i3, s4.i4, s4.i5.0, s4.i0, s4.i1, s4.r0, s4.i5.1)\nunroll(s4.i0)\nunroll(s4.i1)\nunroll(s4.r0)\nvectorize(s4.i5.1)\ncompute_at(s3, s4.i5.0, register)\nreorder(s3.i3, s3.i4, s3.r0, s3.i5)\nunroll(s3.i3)\nunroll(s3.i4)\nunroll(s3.r0)\nvectorize(s3.i5)\nalign(s7, 1, 16)\ns7.f0 = fuse(s7.i3, s7.i4)\nsplit(s7.f0, 10, two_sizes)\nsplit(s7.i5, 8)\nreorder(s7.i0, s7.i1, s7.f0.0, s7.r0, s7.f0.1, s7.i5.0, s7.i5.1)\ns10 = cache_write(s7, register, at=s7.f0.0)\nunroll(s7.f0.1)\nunroll(s7.i5.0)\nvectorize(s7.i5.1)\nsplit(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'f8a1f4782473f70fee5407c167dc55f6',replace('s3 = algorithm(s1, winograd, 4)\ns9 = pack(s7, s6, [i0,i1,i3/32,i2,i3%32])\nsplit(s2.i1, 4, mask)\nsplit(s2.i1.1, 4, mask)\nsplit(s2.i2, 4, mask)\nsplit(s2.i3, [4,8], mask)\nreorder(s2.i1.0, s2.i3.0, s2.i1.1.0, s2.i2.0, s2.i3.1, s2.i1.1.1, s2.i2.1, s2.i3.2)\nunroll(s2.i1.1.1)\nunroll(s2.i2.1)\nvectorize(s2.i3.2)\nparallel(s2.i1.0, 1)\ncompute_at(s4, s2.i1.0, memory)\ncompute_at(s7, s2.i3.0, memory)\ncompute_at(s8, s2.i3.1, register)\nreorder(s8.i3, s8.i4, s8.r0, s8.i5)\nunroll(s8.i3)\nunroll(s8.i4)\nunroll(s8.r0)\nvectorize(s8.i5)\ncompute_at(s1, s2.i3.1, register)\nreorder(s1.i1, s1.i2, s1.r0, s1.i3)\nunroll(s1.i1)\nunroll(s1.i2)\nunroll(s1.r0)\nvectorize(s1.i3)\nalign(s4, 1, 16)\nsplit(s4.i5, 8, mask)\nreorder(s4.i2, s4.i3, s4.i4, s4.i5.0, s4.i0, s4.i1, s4.r0, s4.i5.1)\nunroll(s4.i0)\nunroll(s4.i1)\nunroll(s4.r0)\nvectorize(s4.i5.1)\ncompute_at(s3, s4.i5.0, register)\nreorder(s3.i3, s3.i4, s3.r0, s3.i5)\nunroll(s3.i3)\nunroll(s3.i4)\nunroll(s3.r0)\nvectorize(s3.i5)\nalign(s7, 1, 16)\ns7.f0 = fuse(s7.i3, s7.i4)\nsplit(s7.f0, 2, two_sizes)\nsplit(s7.i5, 8)\nreorder(s7.i0, s7.i1, s7.f0.0, s7.r0, s7.f0.1, s7.i5.0, s7.i5.1)\ns10 = cache_write(s7, register, at=s7.f0.0)\nunroll(s7.f0.1)\nunroll(s7.i5.0)\nvectorize(s7.i5.1)\nsplit(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'c559ff0e79504533601c2a957732133d',replace('s3 = algorithm(s1, winograd, 4)\ns9 = pack(s7, s6, [i0,i1,i3/16,i2,i3%16])\nsplit(s2.i1, 4, mask)\nsplit(s2.i1.1, 4, mask)\nsplit(s2.i2, 4, mask)\nsplit(s2.i3, [2,8], mask)\nreorder(s2.i1.0, s2.i3.0, s2.i1.1.0, s2.i2.0, s2.i3.1, s2.i1.1.1, s2.i2.1, s2.i3.2)\nunroll(s2.i1.1.1)\nunroll(s2.i2.1)\nvectorize(s2.i3.2)\nparallel(s2.i1.0, 1)\ncompute_at(s4, s2.i1.0, memory)\ncompute_at(s7, s2.i3.0, memory)\ncompute_at(s8, s2.i3.1, register)\nreorder(s8.i3, s8.i4, s8.r0, s8.i5)\nunroll(s8.i3)\nunroll(s8.i4)\nunroll(s8.r0)\nvectorize(s8.i5)\ncompute_at(s1, s2.i3.1, register)\nreorder(s1.i1, s1.i2, s1.r0, s1.i3)\nunroll(s1.i1)\nunroll(s1.i2)\nunroll(s1.r0)\nvectorize(s1.i3)\nalign(s4, 1, 16)\nsplit(s4.i5, 8, mask)\nreorder(s4.i2, s4.i3, s4.i4, s4.i5.0, s4.i0, s4.i1, s4.r0, s4.i5.1)\nunroll(s4.i0)\nunroll(s4.i1)\nunroll(s4.r0)\nvectorize(s4.i5.1)\ncompute_at(s3, s4.i5.0, register)\nreorder(s3.i3, s3.i4, s3.r0, s3.i5)\nunroll(s3.i3)\nunroll(s3.i4)\nunroll(s3.r0)\nvectorize(s3.i5)\nalign(s7, 1, 16)\ns7.f0 = fuse(s7.i3, s7.i4)\nsplit(s7.f0, 6, two_sizes)\nsplit(s7.i5, 8)\nreorder(s7.i0, s7.i1, s7.f0.0, s7.r0, s7.f0.1, s7.i5.0, s7.i5.1)\ns10 = cache_write(s7, register, at=s7.f0.0)\nunroll(s7.f0.1)\nunroll(s7.i5.0)\nvectorize(s7.i5.1)\nsplit(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'73c586cefe0bbbf60902f974069016da',replace('s3 = algorithm(s1, winograd, 4)\ns9 = pack(s7, s6, [i0,i1,i3/16,i2,i3%16])\nsplit(s2.i1, 4, mask)\nsplit(s2.i1.1, 4, mask)\nsplit(s2.i2, 4, mask)\nsplit(s2.i3, [2,8], mask)\nreorder(s2.i1.0, s2.i3.0, s2.i1.1.0, s2.i2.0, s2.i3.1, s2.i1.1.1, s2.i2.1, s2.i3.2)\nunroll(s2.i1.1.1)\nunroll(s2.i2.1)\nvectorize(s2.i3.2)\nparallel(s2.i1.0, 1)\ncompute_at(s4, s2.i1.0, memory)\ncompute_at(s7, s2.i3.0, memory)\ncompute_at(s8, s2.i3.1, register)\nreorder(s8.i3, s8.i4, s8.r0, s8.i5)\nunroll(s8.i3)\nunroll(s8.i4)\nunroll(s8.r0)\nvectorize(s8.i5)\ncompute_at(s1, s2.i3.1, register)\nreorder(s1.i1, s1.i2, s1.r0, s1.i3)\nunroll(s1.i1)\nunroll(s1.i2)\nunroll(s1.r0)\nvectorize(s1.i3)\nalign(s4, 1, 16)\nsplit(s4.i5, 8, mask)\nreorder(s4.i2, s4.i3, s4.i4, s4.i5.0, s4.i0, s4.i1, s4.r0, s4.i5.1)\nunroll(s4.i0)\nunroll(s4.i1)\nunroll(s4.r0)\nvectorize(s4.i5.1)\ncompute_at(s3, s4.i5.0, register)\nreorder(s3.i3, s3.i4, s3.r0, s3.i5)\nunroll(s3.i3)\nunroll(s3.i4)\nunroll(s3.r0)\nvectorize(s3.i5)\nalign(s7, 1, 16)\ns7.f0 = fuse(s7.i3, s7.i4)\nsplit(s7.f0, 4, two_sizes)\nsplit(s7.i5, 8)\nreorder(s7.i0, s7.i1, s7.f0.0, s7.r0, s7.f0.1, s7.i5.0, s7.i5.1)\ns10 = cache_write(s7, register, at=s7.f0.0)\nunroll(s7.f0.1)\nunroll(s7.i5.0)\nvectorize(s7.i5.1)\nsplit(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'887555d897ee5cc7232c7a103bd13922',replace('s3 = algorithm(s1, winograd, 4)\ns9 = pack(s7, s6, [i0,i1,i3/16,i2,i3%16])\nsplit(s2.i1, 16, mask)\nsplit(s2.i1.1, 4, mask)\nsplit(s2.i2, 4, mask)\nsplit(s2.i3, [2,8], mask)\nreorder(s2.i1.0, s2.i3.0, s2.i1.1.0, s2.i2.0, s2.i3.1, s2.i1.1.1, s2.i2.1, s2.i3.2)\nunroll(s2.i1.1.1)\nunroll(s2.i2.1)\nvectorize(s2.i3.2)\nparallel(s2.i1.0, 1)\ncompute_at(s4, s2.i1.0, memory)\ncompute_at(s7, s2.i3.0, memory)\ncompute_at(s8, s2.i3.1, register)\nreorder(s8.i3, s8.i4, s8.r0, s8.i5)\nunroll(s8.i3)\nunroll(s8.i4)\nunroll(s8.r0)\nvectorize(s8.i5)\ncompute_at(s1, s2.i3.1, register)\nreorder(s1.i1, s1.i2, s1.r0, s1.i3)\nunroll(s1.i1)\nunroll(s1.i2)\nunroll(s1.r0)\nvectorize(s1.i3)\nalign(s4, 1, 16)\nsplit(s4.i5, 8, mask)\nreorder(s4.i2, s4.i3, s4.i4, s4.i5.0, s4.i0, s4.i1, s4.r0, s4.i5.1)\nunroll(s4.i0)\nunroll(s4.i1)\nunroll(s4.r0)\nvectorize(s4.i5.1)\ncompute_at(s3, s4.i5.0, register)\nreorder(s3.i3, s3.i4, s3.r0, s3.i5)\nunroll(s3.i3)\nunroll(s3.i4)\nunroll(s3.r0)\nvectorize(s3.i5)\nalign(s7, 1, 16)\ns7.f0 = fuse(s7.i3, s7.i4)\nsplit(s7.f0, 6, two_sizes)\nsplit(s7.i5, 8)\nreorder(s7.i0, s7.i1, s7.f0.0, s7.r0, s7.f0.1, s7.i5.0, s7.i5.1)\ns10 = cache_write(s7, register, at=s7.f0.0)\nunroll(s7.f0.1)\nunroll(s7.i5.0)\nvectorize(s7.i5.1)\nsplit(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'0d4edc741a8a01c786404e1d2fc542c6',replace('s3 = algorithm(s1, winograd, 4)\ns9 = pack(s7, s6, [i0,i1,i3/16,i2,i3%16])\nsplit(s2.i1, 12, mask)\nsplit(s2.i1.1, 4, mask)\nsplit(s2.i2, 4, mask)\nsplit(s2.i3, [2,8], mask)\nreorder(s2.i1.0, s2.i3.0, s2.i1.1.0, s2.i2.0, s2.i3.1, s2.i1.1.1, s2.i2.1, s2.i3.2)\nunroll(s2.i1.1.1)\nunroll(s2.i2.1)\nvectorize(s2.i3.2)\nparallel(s2.i1.0, 1)\ncompute_at(s4, s2.i1.0, memory)\ncompute_at(s7, s2.i3.0, memory)\ncompute_at(s8, s2.i3.1, register)\nreorder(s8.i3, s8.i4, s8.r0, s8.i5)\nunroll(s8.i3)\nunroll(s8.i4)\nunroll(s8.r0)\nvectorize(s8.i5)\ncompute_at(s1, s2.i3.1, register)\nreorder(s1.i1, s1.i2, s1.r0, s1.i3)\nunroll(s1.i1)\nunroll(s1.i2)\nunroll(s1.r0)\nvectorize(s1.i3)\nalign(s4, 1, 16)\nsplit(s4.i5, 8, mask)\nreorder(s4.i2, s4.i3, s4.i4, s4.i5.0, s4.i0, s4.i1, s4.r0, s4.i5.1)\nunroll(s4.i0)\nunroll(s4.i1)\nunroll(s4.r0)\nvectorize(s4.i5.1)\ncompute_at(s3, s4.i5.0, register)\nreorder(s3.i3, s3.i4, s3.r0, s3.i5)\nunroll(s3.i3)\nunroll(s3.i4)\nunroll(s3.r0)\nvectorize(s3.i5)\nalign(s7, 1, 16)\ns7.f0 = fuse(s7.i3, s7.i4)\nsplit(s7.f0, 6, two_sizes)\nsplit(s7.i5, 8)\nreorder(s7.i0, s7.i1, s7.f0.0, s7.r0, s7.f0.1, s7.i5.0, s7.i5.1)\ns10 = cache_write(s7, register, at=s7.f0.0)\nunroll(s7.f0.1)\nunroll(s7.i5.0)\nvectorize(s7.i5.1)\nsplit(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'7a02971b3c36648e820f01db2c5ba7f6',replace('s3 = algorithm(s1, winograd, 4)\ns9 = pack(s7, s6, [i0,i1,i3/16,i2,i3%16])\nsplit(s2.i1, 16, mask)\nsplit(s2.i1.1, 4, mask)\nsplit(s2.i2, 4, mask)\nsplit(s2.i3, [2,8], mask)\nreorder(s2.i1.0, s2.i3.0, s2.i1.1.0, s2.i2.0, s2.i3.1, s2.i1.1.1, s2.i2.1, s2.i3.2)\nunroll(s2.i1.1.1)\nunroll(s2.i2.1)\nvectorize(s2.i3.2)\nparallel(s2.i1.0, 1)\ncompute_at(s4, s2.i1.0, memory)\ncompute_at(s7, s2.i3.0, memory)\ncompute_at(s8, s2.i3.1, register)\nreorder(s8.i3, s8.i4, s8.r0, s8.i5)\nunroll(s8.i3)\nunroll(s8.i4)\nunroll(s8.r0)\nvectorize(s8.i5)\ncompute_at(s1, s2.i3.1, register)\nreorder(s1.i1, s1.i2, s1.r0, s1.i3)\nunroll(s1.i1)\nunroll(s1.i2)\nunroll(s1.r0)\nvectorize(s1.i3)\nalign(s4, 1, 16)\nsplit(s4.i5, 8, mask)\nreorder(s4.i2, s4.i3, s4.i4, s4.i5.0, s4.i0, s4.i1, s4.r0, s4.i5.1)\nunroll(s4.i0)\nunroll(s4.i1)\nunroll(s4.r0)\nvectorize(s4.i5.1)\ncompute_at(s3, s4.i5.0, register)\nreorder(s3.i3, s3.i4, s3.r0, s3.i5)\nunroll(s3.i3)\nunroll(s3.i4)\nunroll(s3.r0)\nvectorize(s3.i5)\nalign(s7, 1, 16)\ns7.f0 = fuse(s7.i3, s7.i4)\nsplit(s7.f0, 4, two_sizes)\nsplit(s7.i5, 8)\nreorder(s7.i0, s7.i1, s7.f0.0, s7.r0, s7.f0.1, s7.i5.0, s7.i5.1)\ns10 = cache_write(s7, register, at=s7.f0.0)\nunroll(s7.f0.1)\nunroll(s7.i5.0)\nvectorize(s7.i5.1)\nsplit(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'df595999cc672c0dbcce7550e7252aca',replace('s3 = algorithm(s1, winograd, 4)\ns9 = pack(s7, s6, [i0,i1,i3/16,i2,i3%16])\nsplit(s2.i1, 12, mask)\nsplit(s2.i1.1, 4, mask)\nsplit(s2.i2, 4, mask)\nsplit(s2.i3, [2,8], mask)\nreorder(s2.i1.0, s2.i3.0, s2.i1.1.0, s2.i2.0, s2.i3.1, s2.i1.1.1, s2.i2.1, s2.i3.2)\nunroll(s2.i1.1.1)\nunroll(s2.i2.1)\nvectorize(s2.i3.2)\nparallel(s2.i1.0, 1)\ncompute_at(s4, s2.i1.0, memory)\ncompute_at(s7, s2.i3.0, memory)\ncompute_at(s8, s2.i3.1, register)\nreorder(s8.i3, s8.i4, s8.r0, s8.i5)\nunroll(s8.i3)\nunroll(s8.i4)\nunroll(s8.r0)\nvectorize(s8.i5)\ncompute_at(s1, s2.i3.1, register)\nreorder(s1.i1, s1.i2, s1.r0, s1.i3)\nunroll(s1.i1)\nunroll(s1.i2)\nunroll(s1.r0)\nvectorize(s1.i3)\nalign(s4, 1, 16)\nsplit(s4.i5, 8, mask)\nreorder(s4.i2, s4.i3, s4.i4, s4.i5.0, s4.i0, s4.i1, s4.r0, s4.i5.1)\nunroll(s4.i0)\nunroll(s4.i1)\nunroll(s4.r0)\nvectorize(s4.i5.1)\ncompute_at(s3, s4.i5.0, register)\nreorder(s3.i3, s3.i4, s3.r0, s3.i5)\nunroll(s3.i3)\nunroll(s3.i4)\nunroll(s3.r0)\nvectorize(s3.i5)\nalign(s7, 1, 16)\ns7.f0 = fuse(s7.i3, s7.i4)\nsplit(s7.f0, 4, two_sizes)\nsplit(s7.i5, 8)\nreorder(s7.i0, s7.i1, s7.f0.0, s7.r0, s7.f0.1, s7.i5.0, s7.i5.1)\ns10 = cache_write(s7, register, at=s7.f0.0)\nunroll(s7.f0.1)\nunroll(s7.i5.0)\nvectorize(s7.i5.1)\nsplit(s0.i3, 8)\nsplit(s0.i2, 8)\nunroll(s0.i2.1)\nreorder(s0.i0, s0.i1, s0.i2.0, s0.i3.0, s0.i2.1, s0.i3.1)\nvectorize(s0.i3.1)\nparallel(s0.i1, 1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'f515beb4aca6f56fd2b7a22d85aa0525',replace('s2 = pack(s0, x1, [i1/16,i0,i1%16])\nsplit(s1.i1, [2,8])\nsplit(s1.i0, 6, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'9c345f5dbda0fec5b64ac475b4ae0a8c',replace('s2 = pack(s0, x1, [i1/24,i0,i1%24])\nsplit(s1.i1, [3,8])\nsplit(s1.i0, 4, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'8f4cc482dd78c497e39b34ac0adb774e',replace('s2 = pack(s0, x1, [i1/8,i0,i1%8])\nsplit(s1.i1, [1,8])\nsplit(s1.i0, 3, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'54b5a0e511ce423c28ce5e6c54def2d3',replace('s2 = pack(s0, x1, [i1/16,i0,i1%16])\nsplit(s1.i1, [2,8])\nsplit(s1.i0, 4, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'1da0c1a76a79b249a97435c343a6e48e',replace('s2 = pack(s0, x1, [i1/16,i0,i1%16])\nsplit(s1.i1, [2,8])\nsplit(s1.i0, 5, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'92f1b08b04be80fb5a91bb9d66342e9e',replace('s2 = pack(s0, x1, [i1/24,i0,i1%24])\nsplit(s1.i1, [3,8])\nsplit(s1.i0, 3, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'ffddb180169a4fe5a62a4698c91d2711',replace('s2 = pack(s0, x1, [i1/16,i0,i1%16])\nsplit(s1.i1, [2,8])\nsplit(s1.i0, 3, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'14035fbd0fc588558746ad9fd59c4b55',replace('s2 = pack(s0, x1, [i1/8,i0,i1%8])\nsplit(s1.i1, [1,8])\nsplit(s1.i0, 14, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
INSERT INTO traces VALUES(X'53498c55ac00f8352114d771e3409064',replace('s2 = pack(s0, x1, [i1/8,i0,i1%8])\nsplit(s1.i1, [1,8])\nsplit(s1.i0, 11, two_sizes)\nreorder(s1.i1.0, s1.i0.0, s1.i0.1, s1.i1.1, s1.i1.2)\nparallel(s1.i1.0, 1)\nunroll(s1.i0.1)\nunroll(s1.i1.1)\nvectorize(s1.i1.2)\ncompute_at(s0, s1.i0.0, register)\nsplit(s0.i1, 8)\nreorder(s0.r0, s0.i0, s0.i1.0, s0.i1.1)\nunroll(s0.i0)\nunroll(s0.i1.0)\nvectorize(s0.i1.1)\n','\n',char(10)));
CREATE TABLE targets (
  hash BLOB PRIMARY KEY CHECK (length(hash) = 16),
  text TEXT NOT NULL UNIQUE,
  isa TEXT NOT NULL
) STRICT;
INSERT INTO targets VALUES(X'ccf717a3aa6d2557f3be44e37da746d5','cpu:avx2,threads=1','cpu:avx2');
CREATE TABLE devices (
  id BLOB PRIMARY KEY CHECK (length(id) = 16),
  device_class TEXT NOT NULL,
  fingerprint TEXT NOT NULL
) STRICT;
INSERT INTO devices VALUES(X'548b086fbb14d9d3faa198e04f1b4f35','cpu-1:AuthenticAMD-25-17-l2.1024K-l3.32768K-c2',replace('model name: AMD EPYC\nvendor: AuthenticAMD\nfamily: 25\nmodel: 17\nstepping: 1\nl1: 32K\nl2: 1024K\nl3: 32768K\ncores: 2\n','\n',char(10)));
CREATE TABLE sessions (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  request TEXT NOT NULL,
  seed INTEGER NOT NULL,
  versions TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  merged INTEGER NOT NULL CHECK (merged IN (0, 1))
) STRICT;
INSERT INTO sessions VALUES(1,X'e7c5e98f2d85bb74d0f74d8956b8520f','{"model":"kept","target":"cpu:avx2,threads=1","device_class":"cpu-1:AuthenticAMD-25-17-l2.1024K-l3.32768K-c2","seconds":0.0,"trials":22,"until":"","seed":0,"accuracy":"default","command":"hone tune kept.onnx --target cpu:avx2,threads=1 --seed 0 --trials 22","tasks":[{"workload":"72f30bf9822c0e2b528c9c0472f6cb4c","name":"transpose + conv 3x3 + relu 1x14x14x32","count":1},{"workload":"6e412bc3fbfcbfd9f44514a6ae95b607","name":"depthwise conv 3x3 + transpose + reshape + softmax 32x196","count":1},{"workload":"37bf93cdcb9ef5b73734d46f17e809d6","name":"cumsum add 32x196","count":1},{"workload":"c5b75640a88c1352cd78e43d047dc08c","name":"matmul + add 196x48","count":1}]}',0,'{"hone":"0.1.0","package_format":2,"runtime":1,"log_schema":2,"trace_text":1,"builder":6,"measurement_policy":1,"device_class":1,"feature_schema":2,"protocol":1,"llvm":"22.1.8","xgboost":"1.7.4","targets":["cpu:avx2","cpu:avx512"]}',1795475222330,X'60fd8f938eb2efa3e704101cd8f78ca2',0);
CREATE TABLE blobs (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  bytes BLOB NOT NULL
) STRICT;
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  workload BLOB NOT NULL REFERENCES workloads (hash),
  target BLOB NOT NULL REFERENCES targets (hash),
  device BLOB NOT NULL REFERENCES devices (id),
  accuracy INTEGER NOT NULL CHECK (accuracy BETWEEN 0 AND 2),
  policy INTEGER NOT NULL,
  trace BLOB NOT NULL REFERENCES traces (hash),
  trace_version INTEGER NOT NULL,
  builder TEXT NOT NULL,
  rigor INTEGER NOT NULL CHECK (rigor BETWEEN 0 AND 2),
  median_ns REAL NOT NULL,
  low_ns REAL NOT NULL CHECK (low_ns > 0 AND low_ns <= median_ns),
  high_ns REAL NOT NULL CHECK (median_ns <= high_ns),
  noisy INTEGER NOT NULL CHECK (noisy IN (0, 1)),
  session BLOB NOT NULL REFERENCES sessions (id),
  seed INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  merged INTEGER NOT NULL CHECK (merged IN (0, 1))
) STRICT;
INSERT INTO records VALUES(1,X'af7055d033393bc495f794c853c9cdf2',X'37bf93cdcb9ef5b73734d46f17e809d6',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'f295a85b9827f67510656ac567de18fd',1,'6+22.1',0,917.0,916.0,918.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475222724,X'bf34530004d5ef7288dd17a90ddb4276',0);
INSERT INTO records VALUES(2,X'af7055d033393bc495f794c853c9cdf7',X'6e412bc3fbfcbfd9f44514a6ae95b607',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'55c5e545f79e78b27ab1597104d86b31',1,'6+22.1',0,6792.5,6765.0,6810.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'95d57dc0cf0e6c5d59044284ff37caa3',0);
INSERT INTO records VALUES(3,X'af7055d033393bc495f794c853c9cdfa',X'6e412bc3fbfcbfd9f44514a6ae95b607',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'09c5831a69eb657a56d4a04fbf5d1969',1,'6+22.1',0,6712.5,6670.0,6765.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'74a8ec978845b57561373ab649adb603',0);
INSERT INTO records VALUES(4,X'af7055d033393bc495f794c853c9cdfd',X'6e412bc3fbfcbfd9f44514a6ae95b607',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'edb2a7c1e0369b34f6e888f974084ca7',1,'6+22.1',0,6777.5000000000000001,6740.0,6835.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'9ed4d46eec090ec44262fab177c85475',0);
INSERT INTO records VALUES(5,X'af7055d033393bc495f794c853c9ce00',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'82002e95155c94567783624e8e6a32c4',1,'6+22.1',0,21036.0,20821.0,21191.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'4362cd87c1fdb48dfd81c32ca2a68e4a',0);
INSERT INTO records VALUES(6,X'af7055d033393bc495f794c853c9ce03',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'975d1b4c1aa2b70a8ad116a1f752523a',1,'6+22.1',0,14476.499999999999999,14382.0,14963.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'b8460f02d59b3883695820cd1d3011cc',0);
INSERT INTO records VALUES(7,X'af7055d033393bc495f794c853c9ce06',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'f8a1f4782473f70fee5407c167dc55f6',1,'6+22.1',0,11882.5,11677.0,12529.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'd8ba005198099a9f96987443f938c560',0);
INSERT INTO records VALUES(8,X'af7055d033393bc495f794c853c9ce09',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'c559ff0e79504533601c2a957732133d',1,'6+22.1',0,17651.499999999999999,17537.0,18027.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'bbfc3126dc324386169d17bb0848ce04',0);
INSERT INTO records VALUES(9,X'af7055d033393bc495f794c853c9ce0c',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'73c586cefe0bbbf60902f974069016da',1,'6+22.1',0,17736.5,17617.0,17996.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'a2502f086416b2f1bc31be580421b1d4',0);
INSERT INTO records VALUES(10,X'af7055d033393bc495f794c853c9ce0f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'887555d897ee5cc7232c7a103bd13922',1,'6+22.1',0,15328.0,15233.0,17657.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'32315d7841009fea6b1a39209ee98e91',0);
INSERT INTO records VALUES(11,X'af7055d033393bc495f794c853c9ce12',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'0d4edc741a8a01c786404e1d2fc542c6',1,'6+22.1',0,22724.0,22554.0,23005.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'3b8c44a1853b1ebc95351cd144a2b9f5',0);
INSERT INTO records VALUES(12,X'af7055d033393bc495f794c853c9ce15',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'7a02971b3c36648e820f01db2c5ba7f6',1,'6+22.1',0,16980.0,16695.0,17726.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'93feb55a6c565eeefdc532022e96a66f',0);
INSERT INTO records VALUES(13,X'af7055d033393bc495f794c853c9ce18',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'df595999cc672c0dbcce7550e7252aca',1,'6+22.1',0,21567.0,21191.0,21923.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'36a14c666a3cb0af3fe1553a0979c983',0);
INSERT INTO records VALUES(14,X'af7055d033393bc495f794c853c9ce1b',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'f515beb4aca6f56fd2b7a22d85aa0525',1,'6+22.1',0,6658.0,6613.0,6696.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'69b5bf82071209eaacf815f3c6cd4b23',0);
INSERT INTO records VALUES(15,X'af7055d033393bc495f794c853c9ce1e',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'9c345f5dbda0fec5b64ac475b4ae0a8c',1,'6+22.1',0,6294.0,6272.0,6369.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'a42d3eae26123df09ee7010616b0dfba',0);
INSERT INTO records VALUES(16,X'af7055d033393bc495f794c853c9ce21',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'8f4cc482dd78c497e39b34ac0adb774e',1,'6+22.1',0,11146.0,11036.0,11346.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'7a4d470e8b8063643174a8ac7336da12',0);
INSERT INTO records VALUES(17,X'af7055d033393bc495f794c853c9ce24',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'54b5a0e511ce423c28ce5e6c54def2d3',1,'6+22.1',0,6585.0,6564.0,6600.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223041,X'7304efd245e9a0799fd46208187ae1c8',0);
INSERT INTO records VALUES(18,X'af7055d033393bc495f794c853c9ce29',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'1da0c1a76a79b249a97435c343a6e48e',1,'6+22.1',0,6541.0,6486.0,6590.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223061,X'ef3cd10d9c115e030420624a7c9fd443',0);
INSERT INTO records VALUES(19,X'af7055d033393bc495f794c853c9ce2c',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'92f1b08b04be80fb5a91bb9d66342e9e',1,'6+22.1',0,6407.4999999999999998,6365.0,6483.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223061,X'731ec12c8893edfd1b451c57b0cde7d1',0);
INSERT INTO records VALUES(20,X'af7055d033393bc495f794c853c9ce2f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'ffddb180169a4fe5a62a4698c91d2711',1,'6+22.1',0,7361.0,7311.0,7396.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223061,X'977876d9f48740b4c1b75d1e4b91623b',0);
INSERT INTO records VALUES(21,X'af7055d033393bc495f794c853c9ce32',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'14035fbd0fc588558746ad9fd59c4b55',1,'6+22.1',0,7356.0,7221.0,7446.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223061,X'9f049366869fc3a4d9cb69bf19c47cce',0);
INSERT INTO records VALUES(22,X'af7055d033393bc495f794c853c9ce35',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'53498c55ac00f8352114d771e3409064',1,'6+22.1',0,7176.0,7080.0,7250.0,1,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223061,X'7f0d814a612a37c9100a2124195f32e9',0);
INSERT INTO records VALUES(23,X'af7055d033393bc495f794c853c9ce39',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'f8a1f4782473f70fee5407c167dc55f6',1,'6+22.1',1,11678.0,11257.0,11897.0,0,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223077,X'e8f9fadbb6e2d1eef9bc0e86f3230236',0);
INSERT INTO records VALUES(24,X'af7055d033393bc495f794c853c9ce3c',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'9c345f5dbda0fec5b64ac475b4ae0a8c',1,'6+22.1',1,6194.0,6139.0,6229.0,0,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223095,X'604f76655bfa2696b725a9e91b5270f8',0);
INSERT INTO records VALUES(25,X'af7055d033393bc495f794c853c9ce3f',X'6e412bc3fbfcbfd9f44514a6ae95b607',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'55c5e545f79e78b27ab1597104d86b31',1,'6+22.1',1,6747.4999999999999999,6709.0,6785.0,0,X'e7c5e98f2d85bb74d0f74d8956b8520f',0,1795475223109,X'dc32eb709db5214e91f4631d1355371b',0);
CREATE TABLE samples (
  record BLOB PRIMARY KEY REFERENCES records (id),
  folded INTEGER NOT NULL CHECK (folded IN (0, 1)),
  values_ns BLOB NOT NULL CHECK (length(values_ns) % 8 = 0),
  content BLOB NOT NULL CHECK (length(content) = 16)
) STRICT;
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9cdf2',0,X'0000000000d88c400000000000b08c400000000000a88c400000000000b08c400000000000a88c400000000000a08c400000000000b08c400000000000a08c400000000000b08c400000000000a08c400000000000b08c400000000000a08c400000000000a08c400000000000a88c400000000000b08c400000000000b08c400000000000a88c400000000000a88c400000000000a08c400000000000a08c40',X'3ab7b4ddb9b6f3232b78201dbeac8520');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9cdf7',0,X'00000000002bba400000000000d1ba4000000000009aba4000000000008bba4000000000006dba40000000000031ba4000000000007cba40000000000054ba4000000000009aba400000000000aeba40000000000086ba4000000000006dba4000000000009aba4000000000009aba40000000000045ba40000000000068ba40000000000090ba40000000000081ba400000000000b8ba40000000000095ba40',X'8e071bb1cb29f0c509c0bf72c3566cc2');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9cdfa',0,X'0000000000e6b940000000000059ba400000000000fab94000000000009fba40000000000090ba40000000000081ba40000000000036ba400000000000f5b940000000000054ba40000000000045ba40000000000031ba4000000000000eba40000000000004ba4000000000006dba4000000000003bba40000000000063ba40000000000027ba4000000000000dba4000000000006dba40000000000013ba40',X'941461a9d33776b86154737c168b2afd');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9cdfd',0,X'000000000035ba400000000000d1ba40000000000054ba40000000000081ba40000000000054ba400000000000a9ba40000000000068ba40000000000072ba40000000000081ba40000000000090ba400000000000c2ba4000000000001dba4000000000006dba40000000000045ba40000000000045ba400000000000b3ba400000000000f9ba40000000000081ba400000000000c7ba40000000000031ba40',X'81220e4d5fda67871c19ccff9e6edf4f');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce00',0,X'00000000c0e9d340000000004055d44000000000c070d440000000000007d54000000000c08ed44000000000809bd440000000004019d440000000000000d4400000000000a8d440000000004087d44000000000c04dd440000000008039d44000000000c0b1d44000000000c070d4400000000040a0d4400000000080d2d4400000000080d7d440000000000025d54000000000c06bd44000000000c09dd440',X'cc66c60b0fca0032698d7db475daaa46');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce03',0,X'000000000049cc400000000080a7cd4000000000002fcd40000000000062cc400000000080d5cb40000000000017cc4000000000003acc400000000000bccc400000000000d5cc40000000008043cc4000000000204de74000000000807acd400000000080b7cb400000000080c1cb4000000000800ccc40000000000021cc40000000008039cd40000000008076cb4000000000006bcd4000000000003fcc40',X'70f2a1b958ac0d5aced2cdd867d306f6');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce06',0,X'0000000000c9c7400000000080a1c64000000000802dc74000000000806fc64000000000806ac64000000000000bc7400000000080d8c6400000000000c0c6400000000000edc64000000000003dc7400000000000cfc54000000000007dc840000000000073c8400000000080cec640000000000097c74000000000006ac740000000008091c840000000000096c8400000000080d7c840000000008078c840',X'9e5ef317c4c0abfa48d6544146d6fc67');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce09',0,X'00000000c06dd14000000000002ad14000000000c0aed14000000000c09ad14000000000c0ccd140000000008077d140000000008013d140000000004075d1400000000000dad04000000000c0bbd04000000000002fd140000000004020d1400000000000eed04000000000800bd2400000000080c3d040000000000039d14000000000c045d14000000000c040d140000000000034d14000000000c0ddd240',X'4fd81d007e1ce589c8a823ac70afff72');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce0c',0,X'000000008074ea4000000000802cd140000000000034d140000000008095d14000000000c077d14000000000406bd140000000000016d140000000004061d1400000000040b6d14000000000003ed14000000000c070d0400000000000a2d140000000000039d140000000004089d1400000000000f8d040000000000093d140000000008077d140000000000043d140000000004034d140000000008040d140',X'dbbf3205ea71a71e21056b5221733fdb');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce0f',0,X'000000008095d140000000004098d14000000000004dd140000000008040d14000000000403ed140000000008016d0400000000080c0cd4000000000804cce400000000080c5cd4000000000800acf40000000008010ce400000000080f2cd400000000000f8cc40000000000007cd400000000080edcd400000000080cfcd400000000000e9cc400000000000a7cd400000000000fdcc400000000080d9cd40',X'47b1d254d73979982c9065bce77a3b68');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce12',0,X'000000000081d64000000000c021d640000000008006d64000000000c0f4d5400000000040fcd5400000000040c5d5400000000040fcd5400000000040d4d540000000004077d64000000000805bd640000000000081d64000000000c017d64000000000c017d64000000000004fd640000000004077d6400000000000d8d74000000000802ed64000000000c09cd640000000008033d640000000000045d640',X'4d1b33686ba449e4ada2ffe929a7d76a');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce15',0,X'0000000080f7d1400000000000e1d14000000000c09fd140000000000020d14000000000c084d04000000000c077d54000000000c04dd0400000000040afd04000000000800cd04000000000401ed04000000000804fd14000000000c04dd04000000000405fd0400000000080fad040000000004069d04000000000c089d04000000000c043d04000000000403cd0400000000000dfd0400000000040a0d040',X'ea7cc190052de0aa535d202d4ce54979');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce18',0,X'000000004086d640000000004070d5400000000040ddd34000000000802ed64000000000c0b1d44000000000c068d54000000000c031d54000000000a0d5e3400000000000c6d44000000000c03bd540000000004025d540000000004055d4400000000040afd4400000000080ffd44000000000c031d540000000000020d54000000000c0cad4400000000000c6d4400000000000a8d44000000000c089d440',X'f2605a62d9ad73edc112b37fce467bf0');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce1b',0,X'000000000087b8400000000000d5b94000000000009cb940000000000095b9400000000000e9b94000000000000aba40000000000011ba40000000000039ba40000000000028ba400000000000f6b94000000000006eba400000000000cbb9400000000000b7b9400000000000f6b940000000000011ba400000000000fab940000000000039ba40000000000025ba4000000000001bba40000000000043ba40',X'5b61eb5fafbca52f2e1fb8794e5edea9');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce1e',0,X'000000000008b840000000000094b84000000000004bb840000000000065b840000000000094b8400000000000e1b840000000000047b8400000000000b6b8400000000000a5b84000000000007db84000000000008eb840000000000098b84000000000009eb840000000000092b84000000000002ab940000000000080b8400000000000b5b8400000000000ecb84000000000001db94000000000002bb940',X'82cb319034a47d54bfe51b1203231b12');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce21',0,X'0000000000b7c440000000000084c6400000000080e8c5400000000000f2c5400000000080b6c5400000000000d9c640000000008089c5400000000080a7c5400000000000c0c5400000000000c0c540000000008079c64000000000008ec5400000000080f2c540000000008056c6400000000000cac540000000000089c54000000000800bc640000000000029c640000000000066c540000000000070c540',X'429d5b59cb8c8dcaafbdb79df1151048');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce24',0,X'000000000028b9400000000000a4b940000000000040ba40000000000096b9400000000000c3b9400000000000f4b9400000000000b9b9400000000000b9b940000000000059b940000000000014b9400000000000a4b9400000000000c8b9400000000000a5b9400000000000a4b9400000000000e0b94000000000007cba40000000000095b9400000000000beb9400000000000c3b9400000000000b9b940',X'506f07d2f26052070c560dfd66fbe369');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce29',0,X'000000000023b84000000000003bb9400000000000f3b94000000000008bb9400000000000beb9400000000000dbb940000000000060b94000000000009cb9400000000000c4b94000000000001eba40000000000056b94000000000009fb94000000000007bb9400000000000bab94000000000002ab94000000000004cb94000000000008fb94000000000007eb940000000000099b940000000000031b940',X'ff0138112bd5e56daa76be2dd797062a');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce2c',0,X'000000000065b8400000000000bdb84000000000001db9400000000000b6b8400000000000f1b84000000000006eb94000000000008bb9400000000000c3d3400000000000f2b8400000000000ddb840000000000049b9400000000000e2b840000000000050ba40000000000053b9400000000000c3b8400000000000bab840000000000053b9400000000000e4b84000000000004fb94000000000003bb940',X'0dc66a3f98b700f1adc3ab3314c12770');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce2f',0,X'0000000000f9ba400000000000c1bc4000000000001bbd40000000000067bc400000000000e4bc400000000000c1bc400000000000d0bc40000000000002bd4000000000007bbc40000000000067bc400000000000c1bc400000000000c6bc4000000000008fbc4000000000008fbc4000000000009ebc400000000000cbbc400000000000a8bc400000000000adbc40000000000057bd400000000000e4bc40',X'7008f3dccd648d5f60155d2d8fdc0631');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce32',0,X'000000000094bb40000000000099bd400000000000c1bb40000000000084bc40000000000035bc400000000000fdbc40000000000016bc400000000000eebc40000000000021bc4000000000003ebd400000000000e9bc40000000000075bc40000000000021bc400000000000e4bc40000000000016bd40000000000039bd40000000000094bc400000000000babf400000000000a3bc400000000000d5bc40',X'241ddf58a0581a398d26c5711a2bb07f');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce35',0,X'00000000009aba400000000000b4b94000000000009abb4000000000002bbc40000000000076bb40000000000030bc40000000000052bc400000000000a8bb400000000000f9bb4000000000002abc40000000000089c1400000000000d0bc40000000000076bb40000000000017bc40000000000052bc400000000000e4bb400000000000d6bb400000000000c7bb4000000000007fbc4000000000003fbc40',X'f0d3937d6d65c04e1941f4ab6736097c');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce39',0,X'0000000080ddc7400000000080e8c54000000000006bc54000000000006bc54000000000008ec5400000000000f7c64000000000001ec8400000000000b1c5400000000080c5c540000000000033c74000000000807ec640000000000010c7400000000000ddc74000000000809cc640000000000065c7400000000000cac640000000000097c740000000008051c6400000000080e2c64000000000803cc8400000000080dec5400000000080fcc54000000000803cc7400000000000d4c640',X'3ffd2fa6462a24222aaae38ef7a06006');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce3c',0,X'000000000062b840000000000047b84000000000009bb840000000000097b7400000000000abb7400000000000fbb74000000000003cb840000000000090b740000000000062b84000000000002db840000000000084b840000000000023b840000000000055b840000000000037b840000000000069b8400000000000ccb7400000000000d6b7400000000000d3b740000000000037b840000000000016b8400000000000d9b74000000000001cb840000000000037b840000000000064b940',X'74fa394e962ed58ef7df0d2af9375830');
INSERT INTO samples VALUES(X'af7055d033393bc495f794c853c9ce3f',0,X'000000000035ba4000000000009aba40000000000022ba40000000000040ba40000000000013ba40000000000059ba400000000000afb94000000000000eba40000000000075ba40000000000022ba400000000000b3ba4000000000007cba4000000000009fba400000000000a4ba4000000000009fba40000000000081ba40000000000072ba40000000000027ba400000000000f0b94000000000007cba4000000000004aba4000000000005eba4000000000003bba4000000000009fba40',X'dba8bcac4d5554dce45097b07e335f5e');
CREATE TABLE attempts (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  session BLOB NOT NULL REFERENCES sessions (id),
  workload BLOB NOT NULL REFERENCES workloads (hash),
  target BLOB NOT NULL REFERENCES targets (hash),
  device BLOB NOT NULL REFERENCES devices (id),
  accuracy INTEGER NOT NULL CHECK (accuracy BETWEEN 0 AND 2),
  policy INTEGER NOT NULL,
  trace BLOB NOT NULL REFERENCES traces (hash),
  proposer TEXT NOT NULL,
  outcome INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 9),
  message TEXT NOT NULL,
  record BLOB REFERENCES records (id),
  cost_ns INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  merged INTEGER NOT NULL CHECK (merged IN (0, 1))
) STRICT;
INSERT INTO attempts VALUES(1,X'af7055d033393bc495f794c853c9cdf1',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'37bf93cdcb9ef5b73734d46f17e809d6',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'f295a85b9827f67510656ac567de18fd','default',0,'',X'af7055d033393bc495f794c853c9cdf2',76180038,1795475222724,X'886b97ddc26b711259b401104a199b78',0);
INSERT INTO attempts VALUES(2,X'af7055d033393bc495f794c853c9cdf6',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'6e412bc3fbfcbfd9f44514a6ae95b607',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'55c5e545f79e78b27ab1597104d86b31','default',0,'',X'af7055d033393bc495f794c853c9cdf7',854119,1795475223041,X'889624f9ba8658c3eef27861fdd98dd3',0);
INSERT INTO attempts VALUES(3,X'af7055d033393bc495f794c853c9cdf9',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'6e412bc3fbfcbfd9f44514a6ae95b607',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'09c5831a69eb657a56d4a04fbf5d1969','random',0,'',X'af7055d033393bc495f794c853c9cdfa',758298,1795475223041,X'640353a439bb7abb48169b90dc7b6a52',0);
INSERT INTO attempts VALUES(4,X'af7055d033393bc495f794c853c9cdfc',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'6e412bc3fbfcbfd9f44514a6ae95b607',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'edb2a7c1e0369b34f6e888f974084ca7','model',0,'',X'af7055d033393bc495f794c853c9cdfd',698338,1795475223041,X'fbf0c8747f68e4dcf0a538f040d773ee',0);
INSERT INTO attempts VALUES(5,X'af7055d033393bc495f794c853c9cdff',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'82002e95155c94567783624e8e6a32c4','default',0,'',X'af7055d033393bc495f794c853c9ce00',991804,1795475223041,X'301ea9f0e89c34f1ed53b79415c9cf8a',0);
INSERT INTO attempts VALUES(6,X'af7055d033393bc495f794c853c9ce02',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'975d1b4c1aa2b70a8ad116a1f752523a','random',0,'',X'af7055d033393bc495f794c853c9ce03',1077423,1795475223041,X'30056eccbb84a62c9069644ac6408bc8',0);
INSERT INTO attempts VALUES(7,X'af7055d033393bc495f794c853c9ce05',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'f8a1f4782473f70fee5407c167dc55f6','model',0,'',X'af7055d033393bc495f794c853c9ce06',1244216,1795475223041,X'b1f2145066ad13a5f8dc1c6c52c46a17',0);
INSERT INTO attempts VALUES(8,X'af7055d033393bc495f794c853c9ce08',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'c559ff0e79504533601c2a957732133d','model',0,'',X'af7055d033393bc495f794c853c9ce09',187828002,1795475223041,X'4dc46d7b84ebba3b63d4c462b9b37522',0);
INSERT INTO attempts VALUES(9,X'af7055d033393bc495f794c853c9ce0b',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'73c586cefe0bbbf60902f974069016da','model',0,'',X'af7055d033393bc495f794c853c9ce0c',132632224,1795475223041,X'3065b73e7b6e0c13e8fa42069098f40c',0);
INSERT INTO attempts VALUES(10,X'af7055d033393bc495f794c853c9ce0e',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'887555d897ee5cc7232c7a103bd13922','model',0,'',X'af7055d033393bc495f794c853c9ce0f',930053,1795475223041,X'c11f26ee647111b4a5330898466f41ce',0);
INSERT INTO attempts VALUES(11,X'af7055d033393bc495f794c853c9ce11',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'0d4edc741a8a01c786404e1d2fc542c6','model',0,'',X'af7055d033393bc495f794c853c9ce12',182514671,1795475223041,X'a393b7856f6de3ab7b9c9524cab44ef7',0);
INSERT INTO attempts VALUES(12,X'af7055d033393bc495f794c853c9ce14',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'7a02971b3c36648e820f01db2c5ba7f6','model',0,'',X'af7055d033393bc495f794c853c9ce15',946988,1795475223041,X'bec00d83734b053292ade03161e8974b',0);
INSERT INTO attempts VALUES(13,X'af7055d033393bc495f794c853c9ce17',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'72f30bf9822c0e2b528c9c0472f6cb4c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'df595999cc672c0dbcce7550e7252aca','model',0,'',X'af7055d033393bc495f794c853c9ce18',166878014,1795475223041,X'3ea8063a566bdc9a7b265450604b44b9',0);
INSERT INTO attempts VALUES(14,X'af7055d033393bc495f794c853c9ce1a',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'f515beb4aca6f56fd2b7a22d85aa0525','default',0,'',X'af7055d033393bc495f794c853c9ce1b',794281,1795475223041,X'267a2a4b33a53a7ff407e1a7a6255e92',0);
INSERT INTO attempts VALUES(15,X'af7055d033393bc495f794c853c9ce1d',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'9c345f5dbda0fec5b64ac475b4ae0a8c','model',0,'',X'af7055d033393bc495f794c853c9ce1e',929622,1795475223041,X'bf1f5a2d988b8442a510419256ba7b97',0);
INSERT INTO attempts VALUES(16,X'af7055d033393bc495f794c853c9ce20',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'8f4cc482dd78c497e39b34ac0adb774e','random',0,'',X'af7055d033393bc495f794c853c9ce21',8242987,1795475223041,X'cff3e2892f224a7c1dd60bb7fcfa11df',0);
INSERT INTO attempts VALUES(17,X'af7055d033393bc495f794c853c9ce23',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'54b5a0e511ce423c28ce5e6c54def2d3','model',0,'',X'af7055d033393bc495f794c853c9ce24',706081,1795475223041,X'861f745a2110deecf6327f93ed879637',0);
INSERT INTO attempts VALUES(18,X'af7055d033393bc495f794c853c9ce28',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'1da0c1a76a79b249a97435c343a6e48e','model',0,'',X'af7055d033393bc495f794c853c9ce29',1004507,1795475223061,X'eef05c038222bc54e63ea120199878d9',0);
INSERT INTO attempts VALUES(19,X'af7055d033393bc495f794c853c9ce2b',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'92f1b08b04be80fb5a91bb9d66342e9e','model',0,'',X'af7055d033393bc495f794c853c9ce2c',813941,1795475223061,X'1b500341d206487c17a53fea36dd057e',0);
INSERT INTO attempts VALUES(20,X'af7055d033393bc495f794c853c9ce2e',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'ffddb180169a4fe5a62a4698c91d2711','model',0,'',X'af7055d033393bc495f794c853c9ce2f',10341120,1795475223061,X'4bc9054bf1fbc51da6a6f65030cf5e2d',0);
INSERT INTO attempts VALUES(21,X'af7055d033393bc495f794c853c9ce31',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'14035fbd0fc588558746ad9fd59c4b55','model',0,'',X'af7055d033393bc495f794c853c9ce32',11716786,1795475223061,X'18f6b790c7d1cb3f1ddffb40af131492',0);
INSERT INTO attempts VALUES(22,X'af7055d033393bc495f794c853c9ce34',X'e7c5e98f2d85bb74d0f74d8956b8520f',X'c5b75640a88c1352cd78e43d047dc08c',X'ccf717a3aa6d2557f3be44e37da746d5',X'548b086fbb14d9d3faa198e04f1b4f35',1,1,X'53498c55ac00f8352114d771e3409064','model',0,'',X'af7055d033393bc495f794c853c9ce35',7403258,1795475223061,X'f5bd916e733f0f4cb73ea3c365fd6d70',0);
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  session BLOB REFERENCES sessions (id),
  type TEXT NOT NULL,
  payload BLOB NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  merged INTEGER NOT NULL CHECK (merged IN (0, 1))
) STRICT;
INSERT INTO events VALUES(1,X'af7055d033393bc495f794c853c9cdd8',X'e7c5e98f2d85bb74d0f74d8956b8520f','join',X'3862393032663134366231613661393265613434313037346263643266626462',X'8ae0a39b64cc71551d752c387a4e9aac',0);
INSERT INTO events VALUES(2,X'af7055d033393bc495f794c853c9cdd9',X'e7c5e98f2d85bb74d0f74d8956b8520f','elapsed',X'302e323033',X'3ccd67a85dcfd2aadfa1006c5a31b9a9',0);
INSERT INTO events VALUES(3,X'af7055d033393bc495f794c853c9cdda',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'302030203132352064656661756c74',X'0474a48a39e7503e72b2cc8c22cb8a3a',0);
INSERT INTO events VALUES(4,X'af7055d033393bc495f794c853c9cddb',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'3120332034392064656661756c74',X'57a6ca883bdd66106f2008308adcfa2d',0);
INSERT INTO events VALUES(5,X'af7055d033393bc495f794c853c9cddc',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'32203120302064656661756c74',X'a6650d2552b947ec917b081d31cf7548',0);
INSERT INTO events VALUES(6,X'af7055d033393bc495f794c853c9cddd',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'33203220302064656661756c74',X'8277eb47c99b51cd745cedc4cbdaaa05',0);
INSERT INTO events VALUES(7,X'af7055d033393bc495f794c853c9cdde',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'342030203139362072616e646f6d',X'3c16b9628ba1c631e605e75817e3e778',0);
INSERT INTO events VALUES(8,X'af7055d033393bc495f794c853c9cddf',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'35203020323038206d6f64656c',X'064e333174eb275dc5f1338e9b824508',0);
INSERT INTO events VALUES(9,X'af7055d033393bc495f794c853c9cde0',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'36203020323034206d6f64656c',X'42539cb54decf1c8f4d9dacc94081193',0);
INSERT INTO events VALUES(10,X'af7055d033393bc495f794c853c9cde1',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'37203020323036206d6f64656c',X'83da748a76c85e6c2248e8396d1d6366',0);
INSERT INTO events VALUES(11,X'af7055d033393bc495f794c853c9cde2',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'38203020323230206d6f64656c',X'79c74f53232bb767be8782fc624aba01',0);
INSERT INTO events VALUES(12,X'af7055d033393bc495f794c853c9cde3',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'39203020323236206d6f64656c',X'52a7379950575f09a6aa6931b6d1ffe0',0);
INSERT INTO events VALUES(13,X'af7055d033393bc495f794c853c9cde4',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'3130203020323138206d6f64656c',X'df0b77b59b2156b25b97f9e252ccc937',0);
INSERT INTO events VALUES(14,X'af7055d033393bc495f794c853c9cde5',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'3131203020323234206d6f64656c',X'40f24172238b03051772fee0e9584a75',0);
INSERT INTO events VALUES(15,X'af7055d033393bc495f794c853c9cde6',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'3132203120312072616e646f6d',X'a9ad8e2dd086d554de3bce5044ad6166',0);
INSERT INTO events VALUES(16,X'af7055d033393bc495f794c853c9cde7',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'313320312032206d6f64656c',X'c3df8b71a55bf6e155e1ec07855391ac',0);
INSERT INTO events VALUES(17,X'af7055d033393bc495f794c853c9cde8',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'313420332034302072616e646f6d',X'867e83f6fc51771f78bdca0b012a5d73',0);
INSERT INTO events VALUES(18,X'af7055d033393bc495f794c853c9cde9',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'31352033203136206d6f64656c',X'90089ae4c49bb65f0319293e80f17aa1',0);
INSERT INTO events VALUES(19,X'af7055d033393bc495f794c853c9cdea',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'31362033203135206d6f64656c',X'58213fada19ca3cc40d3c94a440d92b0',0);
INSERT INTO events VALUES(20,X'af7055d033393bc495f794c853c9cdeb',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'31372033203138206d6f64656c',X'f9231b89e8501efafef52a15e2b9a1be',0);
INSERT INTO events VALUES(21,X'af7055d033393bc495f794c853c9cdec',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'31382033203238206d6f64656c',X'afa1dae8c71c26d8bbf9f6d6f0c53c82',0);
INSERT INTO events VALUES(22,X'af7055d033393bc495f794c853c9cded',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'31392033203133206d6f64656c',X'8ca1b3b2e5b4d6e1853c02e4d02d9337',0);
INSERT INTO events VALUES(23,X'af7055d033393bc495f794c853c9cdee',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'32302033203132206d6f64656c',X'000de79d5ab8bca16965cf93b6e43288',0);
INSERT INTO events VALUES(24,X'af7055d033393bc495f794c853c9cdef',X'e7c5e98f2d85bb74d0f74d8956b8520f','proposed',X'32312033203235206d6f64656c',X'b0a7aedf1ba85977df4488e467c29cd7',0);
INSERT INTO events VALUES(25,X'af7055d033393bc495f794c853c9cdf3',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'33206f6b2039313720302e3037363138303033383939393939393939',X'3b79bf0b4a8d3d5a6ea8f934f1e38408',0);
INSERT INTO events VALUES(26,X'af7055d033393bc495f794c853c9cdf4',X'e7c5e98f2d85bb74d0f74d8956b8520f','elapsed',X'302e353930',X'41af46318e28b6b86121de43424a5bad',0);
INSERT INTO events VALUES(27,X'af7055d033393bc495f794c853c9cdf8',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'32206f6b20363739322e3520302e30303038353431313939393939393939393939',X'596f46f156f3130b15402b0fc0354b77',0);
INSERT INTO events VALUES(28,X'af7055d033393bc495f794c853c9cdfb',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3132206f6b20363731322e3520302e303030373538323938',X'e33a04995b67fb79b630eb2671fe6f7b',0);
INSERT INTO events VALUES(29,X'af7055d033393bc495f794c853c9cdfe',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3133206f6b20363737372e3520302e303030363938333338',X'9b5c28ee850a8c74465eddf3b2bc4ac3',0);
INSERT INTO events VALUES(30,X'af7055d033393bc495f794c853c9ce01',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'30206f6b20323130333620302e303030393931383035',X'b7f277394dbd398ae9e7f0bd5e76fccb',0);
INSERT INTO events VALUES(31,X'af7055d033393bc495f794c853c9ce04',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'34206f6b2031343437362e3520302e303031303737343233',X'eef1eb6961836cf47a75c80d46c1ce80',0);
INSERT INTO events VALUES(32,X'af7055d033393bc495f794c853c9ce07',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'36206f6b2031313838322e3520302e303031323434323136',X'd99ad90411ba19a4079a819b3ae2f532',0);
INSERT INTO events VALUES(33,X'af7055d033393bc495f794c853c9ce0a',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'35206f6b2031373635312e3520302e313837383238303032',X'52ccc2c565b9e05191b32908b10114d4',0);
INSERT INTO events VALUES(34,X'af7055d033393bc495f794c853c9ce0d',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'37206f6b2031373733362e3520302e313332363332323234',X'2dac78a26cf2d03a25c20c57d4b85c74',0);
INSERT INTO events VALUES(35,X'af7055d033393bc495f794c853c9ce10',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'39206f6b20313533323820302e303030393330303533',X'a316bfbc683c17643170ae0d38c0ab90',0);
INSERT INTO events VALUES(36,X'af7055d033393bc495f794c853c9ce13',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'38206f6b20323237323420302e313832353134363731',X'736da4ef0a116bad090f1df7285882d9',0);
INSERT INTO events VALUES(37,X'af7055d033393bc495f794c853c9ce16',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3131206f6b20313639383020302e303030393436393838',X'deb73f3405007f26c7a4d5f6e82f3a25',0);
INSERT INTO events VALUES(38,X'af7055d033393bc495f794c853c9ce19',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3130206f6b20323135363720302e3136363837383031343030303030303032',X'64d958ec3828717681f53b6731f2170c',0);
INSERT INTO events VALUES(39,X'af7055d033393bc495f794c853c9ce1c',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'31206f6b203636353820302e303030373934323831',X'dadfee7d4fb47e4c0654cfc137e3fce0',0);
INSERT INTO events VALUES(40,X'af7055d033393bc495f794c853c9ce1f',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3135206f6b203632393420302e303030393239363232',X'5c187103ca3e65696f36dfae243cedb8',0);
INSERT INTO events VALUES(41,X'af7055d033393bc495f794c853c9ce22',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3134206f6b20313131343620302e303038323432393837',X'3bd29cadcb4a5fba64fc1c4e793fcc77',0);
INSERT INTO events VALUES(42,X'af7055d033393bc495f794c853c9ce25',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3136206f6b203635383520302e303030373036303831',X'e393f6477dc6665e37756a74fcdc9436',0);
INSERT INTO events VALUES(43,X'af7055d033393bc495f794c853c9ce26',X'e7c5e98f2d85bb74d0f74d8956b8520f','elapsed',X'302e393037',X'e6de8b3160bdf93bbff739f473c5c3cc',0);
INSERT INTO events VALUES(44,X'af7055d033393bc495f794c853c9ce2a',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3137206f6b203635343120302e30303130303435303739393939393939393939',X'29235993dc74a471646c9d15c2bb9baa',0);
INSERT INTO events VALUES(45,X'af7055d033393bc495f794c853c9ce2d',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3139206f6b20363430372e3520302e303030383133393431',X'3780d03982ca283fb0be84283e580f6c',0);
INSERT INTO events VALUES(46,X'af7055d033393bc495f794c853c9ce30',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3230206f6b203733363120302e3031303334313132',X'cacb18e12d83b6c659b2da77931d7812',0);
INSERT INTO events VALUES(47,X'af7055d033393bc495f794c853c9ce33',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3138206f6b203733353620302e303131373136373836',X'bbb69d851c68a4fb469661122d300da6',0);
INSERT INTO events VALUES(48,X'af7055d033393bc495f794c853c9ce36',X'e7c5e98f2d85bb74d0f74d8956b8520f','result',X'3231206f6b203731373620302e303037343033323538',X'f26e640decefee72845821f3fdcf76f4',0);
INSERT INTO events VALUES(49,X'af7055d033393bc495f794c853c9ce37',X'e7c5e98f2d85bb74d0f74d8956b8520f','elapsed',X'302e393237',X'9f72b7b04dfe3d2ddb37f3f2b77aaf80',0);
INSERT INTO events VALUES(50,X'af7055d033393bc495f794c853c9ce3a',X'e7c5e98f2d85bb74d0f74d8956b8520f','verdict',X'3020776f6e2032303433352e352031313637382e30',X'cfcaa839ffbaaa0754d658460eefa717',0);
INSERT INTO events VALUES(51,X'af7055d033393bc495f794c853c9ce3b',X'e7c5e98f2d85bb74d0f74d8956b8520f','compared',X'302032303433352e35203131363738',X'f9e5778ca1bfd475c4d02e61fc7e9a0b',0);
INSERT INTO events VALUES(52,X'af7055d033393bc495f794c853c9ce3d',X'e7c5e98f2d85bb74d0f74d8956b8520f','verdict',X'3320776f6e20363432362e3020363139342e30',X'2db6b8fd04ec4915cbbc680c4e3a6bfc',0);
INSERT INTO events VALUES(53,X'af7055d033393bc495f794c853c9ce3e',X'e7c5e98f2d85bb74d0f74d8956b8520f','compared',X'3320363432362036313934',X'fc9ec56bce0bcfdd44b17ac015213c3d',0);
INSERT INTO events VALUES(54,X'af7055d033393bc495f794c853c9ce40',X'e7c5e98f2d85bb74d0f74d8956b8520f','verdict',X'31206c6f737420363734372e3520363734372e35',X'988580767744413b17702ee91f77c953',0);
INSERT INTO events VALUES(55,X'af7055d033393bc495f794c853c9ce41',X'e7c5e98f2d85bb74d0f74d8956b8520f','compared',X'3120363734372e3520363734372e35',X'6f5d9095b7bdbaa4b38ebc9d578e14d1',0);
INSERT INTO events VALUES(56,X'af7055d033393bc495f794c853c9ce42',X'e7c5e98f2d85bb74d0f74d8956b8520f','elapsed',X'322e303737',X'557605c1a9f4a7581526d97863e8e613',0);
INSERT INTO events VALUES(57,X'af7055d033393bc495f794c853c9ce43',X'e7c5e98f2d85bb74d0f74d8956b8520f','finished',X'747269616c732075736564207570',X'72175dd0d37c1572cbea146db164fa77',0);
CREATE TABLE farm_starts (
  number INTEGER PRIMARY KEY,
  start INTEGER NOT NULL UNIQUE,
  started_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE farm_sessions (
  number INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  owner TEXT NOT NULL,
  project TEXT NOT NULL,
  digest TEXT NOT NULL,
  spec BLOB NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  device_class TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE farm_leases (
  token BLOB PRIMARY KEY CHECK (length(token) = 16),
  session BLOB NOT NULL REFERENCES farm_sessions (id),
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  device TEXT NOT NULL,
  instance BLOB NOT NULL CHECK (length(instance) = 16),
  state INTEGER NOT NULL,
  content TEXT NOT NULL,
  charge_ns INTEGER NOT NULL CHECK (charge_ns >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE farm_suspects (
  session BLOB NOT NULL REFERENCES farm_sessions (id),
  attempt INTEGER NOT NULL,
  losses INTEGER NOT NULL CHECK (losses > 0),
  condemned INTEGER NOT NULL CHECK (condemned IN (0, 1)),
  reason TEXT NOT NULL,
  PRIMARY KEY (session, attempt)
) STRICT, WITHOUT ROWID;
CREATE TABLE farm_projects (
  project TEXT PRIMARY KEY,
  share INTEGER NOT NULL CHECK (share > 0),
  charged_ns INTEGER NOT NULL CHECK (charged_ns >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE farm_requests (
  caller TEXT NOT NULL,
  id TEXT NOT NULL,
  digest TEXT NOT NULL,
  answer BLOB NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (caller, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE farm_devices (
  worker TEXT NOT NULL,
  device TEXT NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (worker, device)
) STRICT, WITHOUT ROWID;
CREATE TABLE farm_revoked (
  identity TEXT PRIMARY KEY,
  since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE farm_audit (
  number INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX records_by_key ON records (workload, policy, target, low_ns);
CREATE INDEX records_by_session ON records (session);
CREATE INDEX attempts_by_session ON attempts (session);
CREATE INDEX attempts_by_workload ON attempts (workload);
CREATE INDEX events_by_session ON events (session);
CREATE INDEX farm_sessions_by_state ON farm_sessions (state);
CREATE INDEX farm_open_leases ON farm_leases (session) WHERE state <= 2;
CREATE UNIQUE INDEX farm_answers ON farm_leases (session, attempt) WHERE state = 3;
CREATE INDEX farm_requests_by_age ON farm_requests (created_ms);
CREATE TRIGGER workloads_stay BEFORE UPDATE ON workloads
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER workloads_remain BEFORE DELETE ON workloads
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER traces_stay BEFORE UPDATE ON traces
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER traces_remain BEFORE DELETE ON traces
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER targets_stay BEFORE UPDATE ON targets
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER targets_remain BEFORE DELETE ON targets
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER devices_stay BEFORE UPDATE ON devices
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER devices_remain BEFORE DELETE ON devices
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER sessions_stay BEFORE UPDATE ON sessions
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER sessions_remain BEFORE DELETE ON sessions
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER blobs_stay BEFORE UPDATE ON blobs
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER blobs_remain BEFORE DELETE ON blobs
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER records_stay BEFORE UPDATE ON records
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER attempts_stay BEFORE UPDATE ON attempts
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER attempts_remain BEFORE DELETE ON attempts
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER events_stay BEFORE UPDATE ON events
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER samples_remain BEFORE DELETE ON samples
  BEGIN SELECT RAISE(ABORT, 'samples are folded, not deleted'); END;
CREATE TRIGGER samples_fold_once BEFORE UPDATE ON samples WHEN OLD.folded = 1 OR NEW.folded = 0
  BEGIN SELECT RAISE(ABORT, 'samples change only by being folded'); END;
CREATE TRIGGER farm_audit_stays BEFORE UPDATE ON farm_audit
  BEGIN SELECT RAISE(ABORT, 'the audit never changes'); END;
CREATE TRIGGER farm_audit_remains BEFORE DELETE ON farm_audit
  BEGIN SELECT RAISE(ABORT, 'the audit is never deleted'); END;
COMMIT;
PRAGMA user_version = 2;
PRAGMA journal_mode = WAL;
