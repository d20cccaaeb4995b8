"""Line charts and calibration diagrams as SVG, and tables as text."""
