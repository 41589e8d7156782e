-- A small furniture shop: schema and rows, read once a process into a database in memory.
-- Money is whole euro cents; days are ISO dates; every name has an English and a Spanish form.
-- The shop's calendar stands still, so that a question has the same answer on every day it is asked.

CREATE TABLE calendar (today TEXT NOT NULL);

CREATE TABLE products (
  id          TEXT PRIMARY KEY,
  name_en     TEXT NOT NULL UNIQUE,
  name_es     TEXT NOT NULL UNIQUE,
  price_cents INTEGER NOT NULL CHECK (price_cents > 0),
  stock       INTEGER NOT NULL CHECK (stock >= 0),
  reorder_at  INTEGER NOT NULL
);

CREATE TABLE customers (
  id          TEXT PRIMARY KEY,
  name        TEXT NOT NULL,
  email       TEXT NOT NULL UNIQUE,
  street      TEXT NOT NULL,
  postal_code TEXT NOT NULL,
  city        TEXT NOT NULL,
  country     TEXT NOT NULL REFERENCES shipping_rates (country)
);

CREATE TABLE orders (
  id          TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL REFERENCES customers (id),
  ordered_on  TEXT NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('pending', 'paid', 'shipped', 'delivered', 'cancelled'))
);

CREATE TABLE order_lines (
  order_id    TEXT NOT NULL REFERENCES orders (id),
  product_id  TEXT NOT NULL REFERENCES products (id),
  quantity    INTEGER NOT NULL CHECK (quantity > 0),
  unit_cents  INTEGER NOT NULL,
  PRIMARY KEY (order_id, product_id)
);

CREATE TABLE shipments (
  order_id     TEXT PRIMARY KEY REFERENCES orders (id),
  carrier      TEXT NOT NULL,
  tracking     TEXT NOT NULL UNIQUE,
  shipped_on   TEXT NOT NULL,
  promised_on  TEXT NOT NULL,
  delivered_on TEXT
);

CREATE TABLE shipping_rates (
  country    TEXT PRIMARY KEY,
  name_en    TEXT NOT NULL UNIQUE,
  name_es    TEXT NOT NULL UNIQUE,
  base_cents INTEGER NOT NULL,
  item_cents INTEGER NOT NULL,
  days       INTEGER NOT NULL
);

CREATE TABLE refunds (
  number       INTEGER PRIMARY KEY,
  order_id     TEXT NOT NULL REFERENCES orders (id),
  amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
  reason       TEXT NOT NULL,
  status       TEXT NOT NULL CHECK (status IN ('requested', 'approved', 'paid', 'rejected')),
  opened_on    TEXT NOT NULL
);

-- What was sold, one row a product of an order; a pending or cancelled order sold nothing.
CREATE VIEW sales AS
SELECT
  o.id AS order_id,
  o.customer_id AS customer_id,
  CAST(strftime('%Y', o.ordered_on) AS INTEGER) AS year,
  CAST(strftime('%m', o.ordered_on) AS INTEGER) AS month,
  l.product_id AS product_id,
  l.quantity AS units,
  l.quantity * l.unit_cents AS cents
FROM orders AS o
JOIN order_lines AS l ON l.order_id = o.id
WHERE o.status NOT IN ('pending', 'cancelled');

INSERT INTO calendar (today) VALUES
  ('2026-08-20');

INSERT INTO shipping_rates (country, name_en, name_es, base_cents, item_cents, days) VALUES
  ('DE', 'Germany',  'Alemania', 690, 250, 5),
  ('ES', 'Spain',    'España',   390, 150, 2),
  ('FR', 'France',   'Francia',  590, 200, 4),
  ('IE', 'Ireland',  'Irlanda',  990, 350, 6),
  ('IT', 'Italy',    'Italia',   690, 250, 5),
  ('PT', 'Portugal', 'Portugal', 490, 150, 3);

INSERT INTO products (id, name_en, name_es, price_cents, stock, reorder_at) VALUES
  ('P-01', 'desk lamp',    'lámpara de escritorio',  3990, 24, 10),
  ('P-02', 'floor lamp',   'lámpara de pie',         8900,  6,  8),
  ('P-03', 'dining chair', 'silla de comedor',       5950, 40, 12),
  ('P-04', 'office chair', 'silla de oficina',      14900,  3,  5),
  ('P-05', 'armchair',     'sillón',                21900,  9,  3),
  ('P-06', 'dining table', 'mesa de comedor',       34900,  4,  2),
  ('P-07', 'coffee table', 'mesa de centro',        11900, 11,  4),
  ('P-08', 'wool rug',     'alfombra de lana',      12900,  2,  4),
  ('P-09', 'bookcase',     'estantería',            17900,  7,  3),
  ('P-10', 'mirror',       'espejo',                 6900, 15,  5),
  ('P-11', 'cushion',      'cojín',                  1850, 60, 20),
  ('P-12', 'vase',         'jarrón',                 2490,  0,  6);

INSERT INTO customers (id, name, email, street, postal_code, city, country) VALUES
  ('C-101', 'Lucía Fernández', 'lucia@example.com',  'Calle Mayor 12',       '28013',    'Madrid',    'ES'),
  ('C-102', 'Aoife Byrne',     'aoife@example.com',  '14 Quay Street',       'H91 XK2P', 'Galway',    'IE'),
  ('C-103', 'Marc Dubois',     'marc@example.com',   '8 rue des Lilas',      '69003',    'Lyon',      'FR'),
  ('C-104', 'Hanna Vogel',     'hanna@example.com',  'Gartenstraße 5',       '50674',    'Köln',      'DE'),
  ('C-105', 'João Pereira',    'joao@example.com',   'Rua das Flores 31',    '4050-262', 'Porto',     'PT'),
  ('C-106', 'Iker Etxeberria', 'iker@example.com',   'Gran Vía 40',          '48009',    'Bilbao',    'ES'),
  ('C-107', 'Giulia Romano',   'giulia@example.com', 'Via Garibaldi 9',      '10122',    'Torino',    'IT'),
  ('C-108', 'Núria Puig',      'nuria@example.com',  'Carrer de Balmes 77',  '08007',    'Barcelona', 'ES'),
  ('C-109', 'Tom Walsh',       'tom@example.com',    '3 Patrick Street',     'T12 W8YX', 'Cork',      'IE'),
  ('C-110', 'Elena Ortiz',     'elena@example.com',  'Avenida del Puerto 6', '46021',    'Valencia',  'ES');

INSERT INTO orders (id, customer_id, ordered_on, status) VALUES
  ('A-1001', 'C-103', '2025-01-23', 'delivered'),
  ('A-1002', 'C-108', '2025-01-25', 'delivered'),
  ('A-1003', 'C-102', '2025-02-03', 'delivered'),
  ('A-1004', 'C-101', '2025-02-08', 'delivered'),
  ('A-1005', 'C-108', '2025-03-21', 'cancelled'),
  ('A-1006', 'C-102', '2025-03-25', 'delivered'),
  ('A-1007', 'C-102', '2025-04-04', 'delivered'),
  ('A-1008', 'C-101', '2025-04-07', 'delivered'),
  ('A-1009', 'C-104', '2025-05-02', 'delivered'),
  ('A-1010', 'C-105', '2025-05-03', 'delivered'),
  ('A-1011', 'C-107', '2025-05-27', 'delivered'),
  ('A-1012', 'C-104', '2025-06-05', 'delivered'),
  ('A-1013', 'C-102', '2025-06-11', 'delivered'),
  ('A-1014', 'C-110', '2025-07-14', 'delivered'),
  ('A-1015', 'C-107', '2025-07-21', 'delivered'),
  ('A-1016', 'C-103', '2025-08-03', 'delivered'),
  ('A-1017', 'C-103', '2025-08-13', 'delivered'),
  ('A-1018', 'C-110', '2025-09-11', 'delivered'),
  ('A-1019', 'C-106', '2025-09-24', 'delivered'),
  ('A-1020', 'C-102', '2025-10-20', 'delivered'),
  ('A-1021', 'C-103', '2025-10-23', 'delivered'),
  ('A-1022', 'C-103', '2025-11-15', 'cancelled'),
  ('A-1023', 'C-107', '2025-11-19', 'delivered'),
  ('A-1024', 'C-103', '2025-12-09', 'delivered'),
  ('A-1025', 'C-109', '2025-12-13', 'delivered'),
  ('A-1026', 'C-103', '2025-12-18', 'delivered'),
  ('A-1027', 'C-109', '2026-01-05', 'delivered'),
  ('A-1028', 'C-107', '2026-01-19', 'delivered'),
  ('A-1029', 'C-101', '2026-02-03', 'delivered'),
  ('A-1030', 'C-103', '2026-02-15', 'delivered'),
  ('A-1031', 'C-105', '2026-03-14', 'delivered'),
  ('A-1032', 'C-109', '2026-03-21', 'delivered'),
  ('A-1033', 'C-108', '2026-04-02', 'delivered'),
  ('A-1034', 'C-109', '2026-04-24', 'delivered'),
  ('A-1035', 'C-110', '2026-05-18', 'delivered'),
  ('A-1036', 'C-101', '2026-05-23', 'delivered'),
  ('A-1037', 'C-106', '2026-05-26', 'delivered'),
  ('A-1038', 'C-106', '2026-06-03', 'cancelled'),
  ('A-1039', 'C-101', '2026-06-06', 'delivered'),
  ('A-1040', 'C-105', '2026-07-16', 'delivered'),
  ('A-1041', 'C-102', '2026-07-18', 'delivered'),
  ('A-1042', 'C-101', '2026-08-14', 'shipped'),
  ('A-1043', 'C-101', '2026-08-19', 'paid'),
  ('A-1044', 'C-105', '2026-08-20', 'pending');

INSERT INTO order_lines (order_id, product_id, quantity, unit_cents) VALUES
  ('A-1001', 'P-11', 4,  1700),
  ('A-1001', 'P-12', 1,  2490),
  ('A-1002', 'P-04', 1, 14900),
  ('A-1002', 'P-12', 2,  2490),
  ('A-1003', 'P-04', 1, 14900),
  ('A-1004', 'P-04', 1, 14900),
  ('A-1004', 'P-12', 2,  2490),
  ('A-1005', 'P-11', 3,  1700),
  ('A-1006', 'P-10', 1,  6900),
  ('A-1007', 'P-01', 2,  3590),
  ('A-1007', 'P-11', 4,  1700),
  ('A-1008', 'P-10', 1,  6900),
  ('A-1009', 'P-01', 3,  3590),
  ('A-1010', 'P-01', 1,  3590),
  ('A-1011', 'P-01', 1,  3590),
  ('A-1012', 'P-05', 1, 21900),
  ('A-1012', 'P-10', 1,  6900),
  ('A-1013', 'P-01', 3,  3590),
  ('A-1013', 'P-04', 1, 14900),
  ('A-1013', 'P-08', 1, 12900),
  ('A-1014', 'P-10', 1,  6900),
  ('A-1015', 'P-01', 2,  3590),
  ('A-1015', 'P-05', 1, 21900),
  ('A-1016', 'P-12', 2,  2490),
  ('A-1017', 'P-06', 1, 34900),
  ('A-1017', 'P-09', 1, 17900),
  ('A-1018', 'P-11', 3,  1700),
  ('A-1019', 'P-03', 6,  5950),
  ('A-1019', 'P-09', 1, 17900),
  ('A-1019', 'P-11', 4,  1700),
  ('A-1020', 'P-06', 1, 34900),
  ('A-1021', 'P-02', 1,  8000),
  ('A-1021', 'P-08', 1, 12900),
  ('A-1022', 'P-08', 1, 12900),
  ('A-1022', 'P-11', 3,  1700),
  ('A-1023', 'P-02', 1,  8000),
  ('A-1023', 'P-05', 1, 21900),
  ('A-1024', 'P-05', 1, 21900),
  ('A-1024', 'P-06', 1, 34900),
  ('A-1024', 'P-10', 1,  6900),
  ('A-1025', 'P-10', 1,  6900),
  ('A-1026', 'P-08', 1, 12900),
  ('A-1027', 'P-06', 1, 34900),
  ('A-1027', 'P-07', 1, 11900),
  ('A-1027', 'P-08', 1, 12900),
  ('A-1028', 'P-11', 2,  1850),
  ('A-1029', 'P-04', 1, 14900),
  ('A-1029', 'P-07', 1, 11900),
  ('A-1029', 'P-09', 1, 17900),
  ('A-1030', 'P-03', 4,  5950),
  ('A-1031', 'P-06', 1, 34900),
  ('A-1031', 'P-10', 1,  6900),
  ('A-1031', 'P-11', 2,  1850),
  ('A-1032', 'P-04', 1, 14900),
  ('A-1032', 'P-08', 1, 12900),
  ('A-1033', 'P-06', 1, 34900),
  ('A-1034', 'P-05', 1, 21900),
  ('A-1034', 'P-07', 1, 11900),
  ('A-1035', 'P-01', 1,  3990),
  ('A-1036', 'P-01', 1,  3990),
  ('A-1037', 'P-01', 3,  3990),
  ('A-1037', 'P-02', 1,  8900),
  ('A-1037', 'P-09', 1, 17900),
  ('A-1037', 'P-12', 1,  2490),
  ('A-1038', 'P-08', 1, 12900),
  ('A-1038', 'P-10', 1,  6900),
  ('A-1038', 'P-12', 2,  2490),
  ('A-1039', 'P-05', 1, 21900),
  ('A-1040', 'P-01', 2,  3990),
  ('A-1041', 'P-04', 1, 14900),
  ('A-1042', 'P-02', 2,  8900),
  ('A-1042', 'P-09', 1, 17900),
  ('A-1043', 'P-02', 1,  8900),
  ('A-1044', 'P-04', 1, 14900),
  ('A-1044', 'P-12', 2,  2490);

INSERT INTO shipments (order_id, carrier, tracking, shipped_on, promised_on, delivered_on) VALUES
  ('A-1001', 'Blue Van',     'B87935608', '2025-01-24', '2025-01-30', '2025-01-29'),
  ('A-1002', 'Rayo Express', 'P42566909', '2025-01-26', '2025-01-30', '2025-01-30'),
  ('A-1003', 'Rayo Express', 'P25797008', '2025-02-05', '2025-02-12', '2025-02-11'),
  ('A-1004', 'Posta Sur',    'P55078076', '2025-02-09', '2025-02-13', '2025-02-12'),
  ('A-1006', 'Posta Sur',    'R68577596', '2025-03-27', '2025-04-03', '2025-04-03'),
  ('A-1007', 'Blue Van',     'P54765229', '2025-04-06', '2025-04-13', '2025-04-16'),
  ('A-1008', 'Posta Sur',    'B99072799', '2025-04-08', '2025-04-12', '2025-04-12'),
  ('A-1009', 'Blue Van',     'R66234064', '2025-05-03', '2025-05-10', '2025-05-09'),
  ('A-1010', 'Blue Van',     'R84493802', '2025-05-04', '2025-05-09', '2025-05-09'),
  ('A-1011', 'Posta Sur',    'B64367334', '2025-05-28', '2025-06-04', '2025-06-03'),
  ('A-1012', 'Blue Van',     'B23337648', '2025-06-06', '2025-06-13', '2025-06-12'),
  ('A-1013', 'Rayo Express', 'P37778693', '2025-06-12', '2025-06-20', '2025-06-20'),
  ('A-1014', 'Posta Sur',    'B85495410', '2025-07-16', '2025-07-19', '2025-07-18'),
  ('A-1015', 'Blue Van',     'R93672095', '2025-07-22', '2025-07-29', '2025-07-28'),
  ('A-1016', 'Blue Van',     'P10896618', '2025-08-04', '2025-08-10', '2025-08-09'),
  ('A-1017', 'Posta Sur',    'P97107440', '2025-08-14', '2025-08-20', '2025-08-19'),
  ('A-1018', 'Blue Van',     'R57449502', '2025-09-12', '2025-09-16', '2025-09-15'),
  ('A-1019', 'Rayo Express', 'B13385906', '2025-09-25', '2025-09-29', '2025-10-02'),
  ('A-1020', 'Blue Van',     'B22872340', '2025-10-21', '2025-10-29', '2025-10-28'),
  ('A-1021', 'Posta Sur',    'B77420235', '2025-10-25', '2025-10-30', '2025-10-29'),
  ('A-1023', 'Blue Van',     'B22728525', '2025-11-20', '2025-11-27', '2025-11-26'),
  ('A-1024', 'Blue Van',     'P22031115', '2025-12-10', '2025-12-16', '2025-12-15'),
  ('A-1025', 'Posta Sur',    'P33540704', '2025-12-15', '2025-12-22', '2025-12-22'),
  ('A-1026', 'Blue Van',     'R25741773', '2025-12-19', '2025-12-25', '2025-12-24'),
  ('A-1027', 'Blue Van',     'B81577444', '2026-01-06', '2026-01-14', '2026-01-13'),
  ('A-1028', 'Posta Sur',    'R69239732', '2026-01-20', '2026-01-27', '2026-01-26'),
  ('A-1029', 'Posta Sur',    'R57244792', '2026-02-04', '2026-02-08', '2026-02-08'),
  ('A-1030', 'Blue Van',     'P95308626', '2026-02-16', '2026-02-22', '2026-02-21'),
  ('A-1031', 'Blue Van',     'R32957304', '2026-03-15', '2026-03-20', '2026-03-19'),
  ('A-1032', 'Posta Sur',    'R44950868', '2026-03-22', '2026-03-30', '2026-03-29'),
  ('A-1033', 'Rayo Express', 'R12715347', '2026-04-03', '2026-04-07', '2026-04-10'),
  ('A-1034', 'Rayo Express', 'B12095087', '2026-04-25', '2026-05-03', '2026-05-01'),
  ('A-1035', 'Rayo Express', 'B79263897', '2026-05-19', '2026-05-23', '2026-05-21'),
  ('A-1036', 'Blue Van',     'R56720510', '2026-05-25', '2026-05-28', '2026-05-27'),
  ('A-1037', 'Rayo Express', 'R48484303', '2026-05-28', '2026-05-31', '2026-05-30'),
  ('A-1039', 'Rayo Express', 'R73882578', '2026-06-08', '2026-06-11', '2026-06-11'),
  ('A-1040', 'Blue Van',     'B67319578', '2026-07-17', '2026-07-22', '2026-07-21'),
  ('A-1041', 'Rayo Express', 'B98626568', '2026-07-20', '2026-07-27', '2026-07-26'),
  ('A-1042', 'Rayo Express', 'R25909838', '2026-08-15', '2026-08-19', NULL);

INSERT INTO refunds (number, order_id, amount_cents, reason, status, opened_on) VALUES
  (1, 'A-1007',  1500, 'late',       'paid',      '2025-04-17'),
  (2, 'A-1012',  6900, 'damaged',    'paid',      '2025-06-15'),
  (3, 'A-1017', 17900, 'wrong_item', 'rejected',  '2025-08-25'),
  (4, 'A-1019',  3400, 'late',       'approved',  '2025-10-04'),
  (5, 'A-1033',  5000, 'late',       'requested', '2026-04-12');
